//! Refuses requests for other hosts, and requests from web pages.
//!
//! A page in a browser can send requests to this machine's own addresses. Browsers reveal that in
//! `Origin` and `Sec-Fetch-Site` (Fetch standard, sections 3.1 and 3.2). A page can also resolve
//! its own name to 127.0.0.1 (DNS rebinding); then `Host` has that name.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

pub(crate) struct Guard {
    /// Accepted names in lower case; `None` accepts any.
    hosts: Option<Vec<String>>,
}

impl Guard {
    /// With `is_open` clients may use any name, such as over a Unix socket, which no browser can
    /// reach.
    pub(crate) fn new(hosts: &[String], is_open: bool) -> Self {
        let hosts = hosts.iter().map(|name| name.to_ascii_lowercase());
        Self {
            hosts: (!is_open).then(|| hosts.collect()),
        }
    }

    /// Returns why a request is refused.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        // This service has no pages, so no page has a reason to send requests. `none` is the
        // address bar.
        let is_from_page = headers
            .get_all("sec-fetch-site")
            .iter()
            .any(|site| site != "none");
        if is_from_page || headers.contains_key(header::ORIGIN) {
            return Err("requests of web pages are refused (Origin, Sec-Fetch-Site)");
        }
        let Some(hosts) = &self.hosts else {
            return Ok(());
        };
        let refusal = "the header Host must be a loopback address, localhost, or a name of --host";
        let mut names = headers.get_all(header::HOST).iter();
        let (Some(name), None) = (names.next(), names.next()) else {
            return Err(refusal);
        };
        let name = name.to_str().ok().and_then(|name| name.parse().ok());
        let name: Authority = name.ok_or(refusal)?;
        // The target of a request may contain a host too, which has precedence (RFC 9112, section
        // 3.2.2).
        match [Some(&name), uri.authority()]
            .into_iter()
            .flatten()
            .all(|name| is_known(name.host(), hosts))
        {
            true => Ok(()),
            false => Err(refusal),
        }
    }
}

/// Whether a host is accepted. Loopback addresses are: a page cannot rebind them, unlike names.
fn is_known(host: &str, hosts: &[String]) -> bool {
    let host = host.to_ascii_lowercase();
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address = address.unwrap_or(&host).parse::<IpAddr>();
    host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
        || hosts.contains(&host)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_admitted(guard: &Guard, uri: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        guard.check(&uri.parse().unwrap(), &map).is_ok()
    }

    #[test]
    fn names() {
        let guard = Guard::new(&["Sign.Example".into()], false);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]",
            "[::1]:8080",
            "sign.example",
            "SIGN.EXAMPLE:80",
        ] {
            assert!(is_admitted(&guard, "/", &[("host", host)]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "localhost@evil.example",
            "localhost evil.example",
        ] {
            assert!(!is_admitted(&guard, "/", &[("host", host)]), "{host}");
        }
        assert!(!is_admitted(&guard, "/", &[]));
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert!(!is_admitted(&guard, "/", &two));
        assert!(!is_admitted(
            &guard,
            "http://evil.example/",
            &[("host", "localhost")]
        ));
        assert!(is_admitted(
            &guard,
            "http://localhost/",
            &[("host", "localhost")]
        ));
    }

    #[test]
    fn pages() {
        for guard in [Guard::new(&[], false), Guard::new(&[], true)] {
            for header in [
                ("origin", "http://localhost"),
                ("origin", "null"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
                // A page whose own name resolves to this address.
                ("sec-fetch-site", "same-origin"),
            ] {
                let headers = [("host", "localhost"), header];
                assert!(!is_admitted(&guard, "/", &headers), "{header:?}");
            }
            let bar = [("host", "localhost"), ("sec-fetch-site", "none")];
            assert!(is_admitted(&guard, "/", &bar));
        }
        let open = Guard::new(&[], true);
        assert!(is_admitted(&open, "/", &[("host", "any.example")]));
        assert!(is_admitted(&open, "/", &[]));
    }
}

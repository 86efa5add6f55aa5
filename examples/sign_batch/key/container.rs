//! Files with keys: PEM with one or several blocks, and DER.

use batch_modexp::rsa::Error;
use batch_modexp::rsa::{KeyFault, decode_pem};
use batch_modexp::secret::Secret;
use rsa::pkcs8::der::asn1::AnyRef;
use rsa::pkcs8::der::{Decode, Tag, Tagged};

/// A key in DER.
pub struct Document {
    pub kind: Kind,
    pub der: Secret<Vec<u8>>,
}

/// The structure of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `RSAPrivateKey` (RFC 8017, appendix A.1.2).
    Pkcs1Private,
    /// `RSAPublicKey` (RFC 8017, appendix A.1.1).
    Pkcs1Public,
    /// `PrivateKeyInfo` (RFC 5208, section 5).
    Pkcs8,
    /// `EncryptedPrivateKeyInfo` (RFC 5208, section 6).
    Encrypted,
    /// `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
    Spki,
    /// `Certificate` (RFC 5280, section 4.1).
    Certificate,
}

/// Finds the only private key in `bytes`; certificates and other blocks are skipped.
pub fn private_key(bytes: &[u8]) -> Result<Document, String> {
    let document = match look(bytes)? {
        Form::Der => from_der(bytes)?,
        Form::Pem(blocks) => private_block(&blocks)?,
    };
    match document.kind {
        Kind::Pkcs1Public | Kind::Spki => {
            Err("this is a public key, signing needs the private key".into())
        }
        Kind::Certificate => Err("this is a certificate, signing needs the private key".into()),
        _ => Ok(document),
    }
}

/// Finds the only public key in `bytes`, else the only private key, else the first certificate,
/// which is the first of a chain.
pub fn public_or_private_key(bytes: &[u8]) -> Result<Document, String> {
    let blocks = match look(bytes)? {
        Form::Der => return from_der(bytes),
        Form::Pem(blocks) => blocks,
    };
    let public: Vec<_> = blocks
        .iter()
        .filter(|block| block.label.ends_with("PUBLIC KEY"))
        .collect();
    match public[..] {
        [] if blocks.iter().all(|block| block.label == "CERTIFICATE") => {
            blocks[0].decode(Kind::Certificate)
        }
        [] => private_block(&blocks),
        [block] => match block.label {
            "PUBLIC KEY" => block.decode(Kind::Spki),
            "RSA PUBLIC KEY" => block.decode(Kind::Pkcs1Public),
            other => Err(format!("cannot use a PEM block of type {other:?}")),
        },
        _ => Err(format!(
            "there are {} public keys in it; keep one",
            public.len()
        )),
    }
}

/// The format of a file.
enum Form<'a> {
    Pem(Vec<Block<'a>>),
    Der,
}

fn look(bytes: &[u8]) -> Result<Form<'_>, String> {
    if bytes.trim_ascii().is_empty() {
        return Err("the file is empty".into());
    }
    let blocks = blocks(bytes)?;
    if !blocks.is_empty() {
        Ok(Form::Pem(blocks))
    } else if bytes[0] == 0x30 {
        Ok(Form::Der)
    } else {
        Err("this is no key, neither in PEM nor in DER".into())
    }
}

/// A block of a PEM file, from its first hyphen to its last.
struct Block<'a> {
    label: &'a str,
    text: &'a [u8],
}

impl Block<'_> {
    fn decode(&self, kind: Kind) -> Result<Document, String> {
        let no_base64 = || format!("damaged PEM: the {} is no base64", name(self.label));
        match decode_pem(self.text, &[self.label]) {
            Ok(Some((_, der))) => Ok(Document { kind, der }),
            Ok(None) | Err(Error::Key(KeyFault::Pem)) => Err(no_base64()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Finds all blocks, and ignores text between them (RFC 7468, section 2).
fn blocks(bytes: &[u8]) -> Result<Vec<Block<'_>>, String> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let (mut blocks, mut rest) = (Vec::new(), bytes);
    while let Some(start) = find(rest, BEGIN) {
        rest = &rest[start..];
        let label = &rest[BEGIN.len()..];
        let label = find(label, b"-----").and_then(|end| str::from_utf8(&label[..end]).ok());
        let label = label
            .filter(|label| !label.contains('\n'))
            .ok_or("damaged PEM: a header does not end")?;
        let end = format!("-----END {label}-----");
        let len = find(rest, end.as_bytes()).map(|start| start + end.len());
        let len = len.ok_or_else(|| format!("damaged PEM: the {} has no end", name(label)))?;
        let text = &rest[..len];
        blocks.push(Block { label, text });
        rest = &rest[len..];
    }
    Ok(blocks)
}

/// Position of the first `pattern`.
fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

fn private_block(blocks: &[Block<'_>]) -> Result<Document, String> {
    let private: Vec<_> = blocks
        .iter()
        .filter(|block| block.label.ends_with("PRIVATE KEY"))
        .collect();
    let block = match private[..] {
        [block] => block,
        [] => {
            let mut names: Vec<_> = blocks.iter().map(|block| name(block.label)).collect();
            names.dedup();
            return Err(format!(
                "there is no private key in it, only: {}",
                names.join(", ")
            ));
        }
        _ => {
            return Err(format!(
                "there are {} private keys in it; keep the one to sign with",
                private.len()
            ));
        }
    };
    match block.label {
        "RSA PRIVATE KEY" if find(block.text, b"Proc-Type: 4,ENCRYPTED").is_some() => Err(
            "the key is encrypted in the old way of PEM; convert it with \
             `openssl pkcs8 -topk8 -in KEY -out NEW` and use --passphrase-file"
                .into(),
        ),
        "RSA PRIVATE KEY" => block.decode(Kind::Pkcs1Private),
        "PRIVATE KEY" => block.decode(Kind::Pkcs8),
        "ENCRYPTED PRIVATE KEY" => block.decode(Kind::Encrypted),
        "OPENSSH PRIVATE KEY" => Err("this is an OpenSSH key; convert a copy of it with \
             `cp KEY NEW && ssh-keygen -p -m PKCS8 -f NEW`"
            .into()),
        other => Err(format!(
            "this is a key of type {other:?}; an RSA private key is needed"
        )),
    }
}

/// A label as written in the middle of a sentence.
fn name(label: &str) -> String {
    label
        .split(' ')
        .map(|word| match word {
            "RSA" | "EC" | "DSA" | "DH" | "X509" | "CRL" | "PKCS7" | "OPENSSH" => word.into(),
            word => word.to_lowercase(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Recognises a structure by the types of its first fields.
fn from_der(bytes: &[u8]) -> Result<Document, String> {
    let fields = Vec::<AnyRef<'_>>::from_der(bytes)
        .map_err(|error| format!("damaged DER, or something after it: {error}"))?;
    let tags: Vec<_> = fields.iter().take(3).map(Tagged::tag).collect();
    let is_three = fields.first().is_some_and(|field| field.value() == [3]);
    let kind = match tags[..] {
        [Tag::Integer, Tag::Sequence, ..] if is_three => return Err(
            "this is PKCS#12; take the key out with `openssl pkcs12 -in FILE -nocerts -out NEW` \
             and use --passphrase-file"
                .into(),
        ),
        [Tag::Integer, Tag::Sequence, ..] => Kind::Pkcs8,
        [Tag::Integer, Tag::Integer] => Kind::Pkcs1Public,
        [Tag::Integer, Tag::Integer, Tag::Integer] => Kind::Pkcs1Private,
        [Tag::Sequence, Tag::OctetString] => Kind::Encrypted,
        [Tag::Sequence, Tag::BitString] => Kind::Spki,
        [Tag::Sequence, Tag::Sequence, Tag::BitString] => Kind::Certificate,
        [Tag::Integer, Tag::OctetString, ..] => {
            return Err("this is an elliptic-curve key; an RSA key is needed".into());
        }
        _ => return Err("this DER holds no key".into()),
    };
    Ok(Document {
        kind,
        der: Secret::new(bytes.to_vec()),
    })
}

//! Keys that are restricted to RSASSA-PSS.

use super::*;
use batch_modexp::rsa::Signatures;

#[test]
fn keys_for_pss_alone() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("pss")).unwrap();
    assert_eq!(handle.restriction(), Restriction::Pss);
    let mut rng = keys::rng();
    let signer = BatchSigner::new(Serial, Pss::<Sha384>::with_salt_len(0));
    assert!(
        signer
            .sign(&mut rng, &handle, &["m"])
            .unwrap()
            .get(0)
            .is_ok()
    );
    let signer = BatchSigner::new(Serial, Pkcs1v15::<Sha256>::new());
    let error = Error::KeyRestricted {
        index: 0,
        restriction: Restriction::Pss,
    };
    let signatures = signer.sign(&mut rng, &handle, &["m"]).unwrap();
    assert_eq!(signatures.get(0).unwrap_err(), error);
}

#[test]
fn keys_for_pss_with_given_parameters() {
    let handle = KeyHandle::from_pkcs8_pem(pem!("pss-sha256")).unwrap();
    let restriction = Restriction::PssWith {
        hash: Hash::Sha256,
        min_salt_len: 40,
    };
    assert_eq!(handle.restriction(), restriction);
    let free = KeyHandle::from_pkcs1_pem(pem!("rsa1024")).unwrap();
    let (sha256, sha512) = (Hash::Sha256, Hash::Sha512);
    let schemes = [
        (
            AnyScheme::Pss {
                hash: sha256,
                salt_len: 40,
            },
            true,
        ),
        (
            AnyScheme::Pss {
                hash: sha256,
                salt_len: 41,
            },
            true,
        ),
        (
            AnyScheme::Pss {
                hash: sha256,
                salt_len: 39,
            },
            false,
        ),
        (
            AnyScheme::Pss {
                hash: sha512,
                salt_len: 48,
            },
            false,
        ),
        (AnyScheme::Pkcs1v15 { hash: sha256 }, false),
    ];
    let signer = BatchSigner::new(Serial, schemes[0].0);
    let batch: Vec<_> = schemes
        .iter()
        .flat_map(|(scheme, _)| [(&handle, *scheme, "m"), (&free, *scheme, "m")])
        .collect();
    let signatures = signer.sign_mixed(&mut keys::rng(), &batch).unwrap();
    for (index, signature) in signatures.iter().enumerate() {
        if index % 2 == 1 || schemes[index / 2].1 {
            assert!(signature.is_ok());
        } else {
            let expected = Error::KeyRestricted { index, restriction };
            assert_eq!(signature.unwrap_err(), expected);
            let text = expected.to_string();
            assert!(
                text.contains("SHA-256") && text.contains("40 bytes"),
                "{text}"
            );
        }
    }
    // The same with a scheme type.
    let mut rng = keys::rng();
    let permits = |signature: Result<Signatures, Error>| signature.unwrap().get(0).is_ok();
    let short = BatchSigner::new(Serial, Pss::<Sha256>::new());
    assert!(!permits(short.sign(&mut rng, &handle, &["m"])));
    let long = BatchSigner::new(Serial, Pss::<Sha256>::with_salt_len(40));
    assert!(permits(long.sign(&mut rng, &handle, &["m"])));
    let other = BatchSigner::new(Serial, Pss::<Sha512>::with_salt_len(40));
    assert!(!permits(other.sign(&mut rng, &handle, &["m"])));
}

#[test]
fn keys_for_pss_with_parameters_that_nobody_here_signs_with() {
    for pem in [pem!("pss-sha1"), pem!("pss-mixed")] {
        let error = KeyHandle::from_pkcs8_pem(pem).unwrap_err();
        assert_eq!(error, Error::Key(KeyFault::PssParameters));
    }
}

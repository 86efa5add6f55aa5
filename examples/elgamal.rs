//! ElGamal encryption of 10,000 votes, and their sum without decrypting any of them, with and
//! without tables for the bases.
//!
//! `cargo run --release --example elgamal`
//!
//! A vote v, 0 or 1, becomes `(g^r, h^r g^v)` with a random r of 256 bits and the public key `h =
//! g^x`. The scheme is that of R. Cramer, R. Gennaro and B. Schoenmakers, "A secure and optimally
//! efficient multi-authority election scheme", EUROCRYPT '97. A product of ciphertexts is a
//! ciphertext of the sum. Proofs that a vote is 0 or 1 are left out.

use std::error::Error;
use std::time::Instant;

use batch_modexp::backend::Auto;
use batch_modexp::{BatchFixedBaseExp, BatchModExp, BatchModMul, ModExp, ModMul};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U256, U4096};
use getrandom::SysRng;
use getrandom::rand_core::TryRng;

/// The safe prime of the 4096-bit group of RFC 3526, section 5. Its generator 2 has the order
/// `(p - 1) / 2`.
const PRIME: &str = "\
    FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74\
    020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F1437\
    4FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED\
    EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF05\
    98DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB\
    9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B\
    E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF695581718\
    3995497CEA956AE515D2261898FA051015728E5A8AAAC42DAD33170D04507A33\
    A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7\
    ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864\
    D87602733EC86A64521F2B18177B200CBBE117577A615D6C770988C0BAD946E2\
    08E24FA074E5AB3143DB5BFCE0FD108E4B82D120A92108011A723C12A787E6D7\
    88719A10BDBA5B2699C327186AF4E23C1A946834B6150BDA2583E9CA2AD44CE8\
    DBBBC2DB04DE8EF92E8EFC141FBECAA6287C59474E6BC05D99B2964FA090C3A2\
    233BA186515BE7ED1F612970CEE2D7AFB81BDD762170481CD0069127D5B05AA9\
    93B4EA988D8FDDC186FFB7DC90A6C08F4DF435C934063199FFFFFFFFFFFFFFFF";

const VOTES: usize = 10_000;

/// The length of secret exponents: twice the security of the group, as in RFC 7919, section 5.2.
const BITS: u32 = 256;

/// Octets of each of the two tables.
const TABLE: usize = 8 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let params = FixedMontyParams::new(Odd::new(U4096::from_be_hex(PRIME)).expect("a prime"));
    let backend = Auto::new()?;
    let g = U4096::from(2u8);
    let x = random()?;
    let h = power(&backend, &g, &x, &params)?;

    let begin = Instant::now();
    let table_g = backend.fixed_base(&g, &params, BITS, TABLE)?;
    let table_h = backend.fixed_base(&h, &params, BITS, TABLE)?;
    println!(
        "two tables, {:.1} MiB each, in {:.0} ms",
        table_g.bytes() as f64 / f64::from(1 << 20),
        begin.elapsed().as_secs_f64() * 1e3
    );

    let votes = (0..VOTES)
        .map(|_| Ok(random()?.as_words()[0] & 1 == 1))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let randomness = (0..VOTES)
        .map(|_| random())
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .map(|r| r.resize())
        .collect::<Vec<U4096>>();

    let begin = Instant::now();
    let [mut c1, mut masks, mut c2] = [(); 3].map(|()| vec![U4096::ZERO; VOTES]);
    backend.batch_fixed_base_exp(&table_g, &randomness, BITS, &mut c1)?;
    backend.batch_fixed_base_exp(&table_h, &randomness, BITS, &mut masks)?;
    // g^v without a branch: 1 + v, because g is 2.
    let encoded: Vec<_> = votes
        .iter()
        .map(|v| U4096::from(1 + u8::from(*v)))
        .collect();
    let products: Vec<_> = masks
        .iter()
        .zip(&encoded)
        .map(|(mask, vote)| ModMul::new(mask, vote, &params))
        .collect();
    backend.batch_mod_mul(&products, &mut c2)?;
    let rate = VOTES as f64 / begin.elapsed().as_secs_f64();
    println!("{VOTES} votes encrypted, {rate:.0} a second");

    // The same without tables, on fewer votes, which take about a second.
    let few = VOTES / 20;
    let powers = |base| {
        let instance = |r| ModExp::new(base, r, &params);
        randomness[..few].iter().map(instance).collect::<Vec<_>>()
    };
    let begin = Instant::now();
    let mut out = vec![U4096::ZERO; few];
    backend.batch_mod_exp(&powers(&h), BITS, &mut out)?;
    assert_eq!(out, masks[..few]);
    backend.batch_mod_exp(&powers(&g), BITS, &mut out)?;
    assert_eq!(out, c1[..few]);
    let by_powers = few as f64 / begin.elapsed().as_secs_f64();
    println!(
        "without tables {by_powers:.0} a second: {:.1} times",
        rate / by_powers
    );

    let begin = Instant::now();
    let form = FixedMontyForm::new(&h, &params);
    for (r, expected) in randomness[..4].iter().zip(&masks) {
        assert_eq!(form.pow_bounded_exp(r, BITS).retrieve(), *expected);
    }
    let one_by_one = 4.0 / begin.elapsed().as_secs_f64() / 2.0;
    println!("crypto-bigint one by one, on one core: {one_by_one:.0} a second");

    // The sum of all votes, from the product of all ciphertexts.
    let sum = [
        product(&backend, c1, &params)?,
        product(&backend, c2, &params)?,
    ];
    let mask = power(&backend, &sum[0], &x, &params)?;
    let mask = mask
        .invert_odd_mod(params.modulus())
        .expect("a number below the prime");
    let mut encoded = [U4096::ZERO];
    backend.batch_mod_mul(&[ModMul::new(&sum[1], &mask, &params)], &mut encoded)?;
    let two = FixedMontyForm::new(&g, &params);
    let mut candidate = FixedMontyForm::one(&params);
    let mut count = 0;
    while candidate.retrieve() != encoded[0] {
        (candidate, count) = (candidate * two, count + 1);
        assert!(count <= VOTES, "the sum is of {VOTES} votes");
    }
    assert_eq!(count, votes.iter().filter(|vote| **vote).count());
    println!("{count} votes are yes");
    Ok(())
}

fn random() -> Result<U256, Box<dyn Error>> {
    let mut octets = [0; 32];
    SysRng.try_fill_bytes(&mut octets)?;
    Ok(U256::from_be_slice(&octets))
}

fn power(
    backend: &Auto,
    base: &U4096,
    exponent: &U256,
    params: &FixedMontyParams<{ U4096::LIMBS }>,
) -> Result<U4096, batch_modexp::Error> {
    let (exponent, mut out) = (exponent.resize(), [U4096::ZERO]);
    backend.batch_mod_exp(&[ModExp::new(base, &exponent, params)], BITS, &mut out)?;
    Ok(out[0])
}

/// The product of all numbers, computed pairwise.
fn product(
    backend: &Auto,
    mut numbers: Vec<U4096>,
    params: &FixedMontyParams<{ U4096::LIMBS }>,
) -> Result<U4096, batch_modexp::Error> {
    while numbers.len() > 1 {
        if numbers.len() % 2 == 1 {
            numbers.push(U4096::ONE);
        }
        let (first, second) = numbers.split_at(numbers.len() / 2);
        let pairs: Vec<_> = first
            .iter()
            .zip(second)
            .map(|(a, b)| ModMul::new(a, b, params))
            .collect();
        let mut products = vec![U4096::ZERO; pairs.len()];
        backend.batch_mod_mul(&pairs, &mut products)?;
        numbers = products;
    }
    Ok(numbers[0])
}

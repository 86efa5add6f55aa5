//! Launches of the shipped entry points, as kernels/README.md describes them, with all numbers
//! secret.

use num_bigint::BigUint;
use ptx_machine::{Argument, Global, Launch, Module, Outcome, Program, RunError};

use crate::manifest::ShippedEntry;

/// The least number of powers in a window table. Other numbers share its memory.
fn fewest_entries(entry: &ShippedEntry) -> u32 {
    match entry.family.as_str() {
        "rns" | "rns_mma" => 32,
        _ => 8,
    }
}

/// One exponentiation. Its modulus is given by the index in the batch's list.
pub(crate) struct Instance {
    pub(crate) base: BigUint,
    pub(crate) exponent: BigUint,
    pub(crate) modulus: usize,
}

/// The public parameters of a launch of `modexp_BITS_tT`.
#[derive(Clone, Copy)]
pub(crate) struct ModExpLaunch {
    pub(crate) blocks: u32,
    pub(crate) exponent_bits: u32,
    pub(crate) r2_bits: u32,
    pub(crate) window: u32,
}

/// The results of a launch, and what it left behind.
pub(crate) struct Results {
    pub(crate) powers: Vec<BigUint>,
    pub(crate) outcome: Outcome,
    /// Whether the scratch buffer depends on a secret.
    pub(crate) secrets_left_in_scratch: bool,
}

/// Runs a batch with secret bases, exponents, moduli and `r2`.
///
/// Inputs are read-only, and `out` and `scratch` are uninitialised. Every buffer has exactly the
/// documented length, so that an access beyond it is a fault.
pub(crate) fn modexp(
    entry: &ShippedEntry,
    program: &Program,
    moduli: &[BigUint],
    batch: &[Instance],
    public: ModExpLaunch,
) -> Result<Results, RunError> {
    let bytes = entry.bits as usize / 8;
    let mut global = Global::default();
    let mut input = |contents: Vec<u8>, secret: bool| {
        let pointer = global.with_bytes(contents, secret);
        global.set_read_only(pointer);
        Argument::Pointer(pointer)
    };
    let numbers = |numbers: &mut dyn Iterator<Item = BigUint>| {
        numbers
            .flat_map(|number| padded(&number, bytes))
            .collect::<Vec<u8>>()
    };
    let r = BigUint::from(1u32) << public.r2_bits as usize;
    let base = input(numbers(&mut batch.iter().map(|x| x.base.clone())), true);
    let exponent = input(numbers(&mut batch.iter().map(|x| x.exponent.clone())), true);
    let params = input(
        numbers(
            &mut moduli
                .iter()
                .flat_map(|modulus| [modulus.clone(), &r * &r % modulus]),
        ),
        true,
    );
    let index = batch.iter().flat_map(|x| (x.modulus as u32).to_le_bytes());
    let index = input(index.collect(), false);

    let out = global.uninitialised(bytes * batch.len());
    let scratch = global.uninitialised(scratch_bytes(entry, public.blocks, public.window));
    let launch = launch(entry, public.blocks);
    let arguments = [
        Argument::Pointer(out),
        base,
        exponent,
        params,
        index,
        Argument::Pointer(scratch),
        Argument::U32(batch.len() as u32),
        Argument::U32(public.exponent_bits),
        Argument::U32(public.r2_bits),
        Argument::U32(public.window),
    ];
    let outcome = program.run(&launch, &arguments, &mut global)?;
    let out = global.buffer(out);
    assert!(
        out.all_written(),
        "{}: not every result was written",
        entry.name
    );
    Ok(Results {
        powers: out
            .bytes()
            .chunks(bytes)
            .map(BigUint::from_bytes_le)
            .collect(),
        outcome,
        secrets_left_in_scratch: global.buffer(scratch).holds_secrets(),
    })
}

/// The decoded program of an entry point.
pub(crate) fn program(entry: &ShippedEntry) -> Program {
    let module = Module::parse(&entry.ptx).unwrap_or_else(|error| panic!("{error}"));
    let found = module.entry(&entry.name).expect("the module has the entry");
    found.decode().unwrap_or_else(|error| panic!("{error}"))
}

/// A launch of `blocks` blocks.
pub(crate) fn launch(entry: &ShippedEntry, blocks: u32) -> Launch {
    Launch::new(blocks, entry.threads).with_dynamic_shared(entry.shared_bytes)
}

/// Bytes of the scratch buffer for a launch of `blocks` blocks.
pub(crate) fn scratch_bytes(entry: &ShippedEntry, blocks: u32, window: u32) -> usize {
    let table_entries = (1 << window).max(fewest_entries(entry));
    (blocks * entry.threads * entry.scratch_doubles * table_entries) as usize * 8
}

/// Little-endian words of a number.
pub(crate) fn padded(number: &BigUint, bytes: usize) -> Vec<u8> {
    let mut words = number.to_bytes_le();
    words.resize(bytes, 0);
    words
}

//! Tests of global variables of a module.

use ptx_machine::{Argument, Fault, Global, Launch, Location, Module, Outcome, RunError};

/// Adds one word to `sum`, and stores the sum after each block.
const SUMS: &str = ".version 8.0
.target sm_90
.address_size 64
.global .align 16 .b8 sum[16];
.global .align 4 .u32 one = 1;
.visible .entry sums(.param .u64 out, .param .u64 term)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [term];
    mov.u64 %rd3, sum;
    ld.global.u32 %r1, [%rd2];
    ld.global.u32 %r2, [%rd3+4];
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd3+4], %r1;
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %rd4, %r2, 4;
    add.s64 %rd4, %rd4, %rd1;
    st.global.u32 [%rd4], %r1;
    ret;
}
.visible .entry overwrites()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, one;
    st.global.u32 [%rd1], 2;
    ret;
}
";

/// The sums after each of two blocks of 32 threads, of which each stores the same.
fn sums(secret: bool) -> (Vec<u8>, Outcome) {
    let module = Module::parse(SUMS).unwrap();
    let program = module.entry("sums").unwrap().decode().unwrap();
    let mut global = Global::default();
    let term = Argument::Pointer(global.with_bytes(vec![7, 0, 0, 0], secret));
    let mut results = Vec::new();
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let out = global.uninitialised(8);
        let arguments = [Argument::Pointer(out), term];
        let outcome = program.run(&Launch::new(2, 32), &arguments, &mut global);
        outcomes.push(outcome.unwrap());
        results.push(global.buffer(out).bytes().to_vec());
    }
    assert_eq!((&results[0], outcomes[0]), (&results[1], outcomes[1]));
    (results.remove(0), outcomes[0])
}

#[test]
fn every_run_begins_with_zeros() {
    let (results, outcome) = sums(false);
    assert_eq!(results, [7, 0, 0, 0, 14, 0, 0, 0]);
    assert!(!outcome.secrets_left_in_variables);
}

#[test]
fn secrets_in_variables_are_noticed() {
    assert!(sums(true).1.secrets_left_in_variables);
}

#[test]
fn variables_with_initial_values_are_read_only() {
    let module = Module::parse(SUMS).unwrap();
    let program = module.entry("overwrites").unwrap().decode().unwrap();
    let Err(RunError::Stop(stop)) = program.run(&Launch::new(1, 32), &[], &mut Global::default())
    else {
        panic!("an initialised variable was overwritten");
    };
    assert_eq!(stop.fault, Fault::ReadOnly(Location::Variable(0)));
}

use super::statement::operands_of;
use super::*;

/// An entry point with this body.
fn body(text: &str) -> Result<Module, PtxError> {
    Module::parse(&format!(".visible .entry k()\n{{\n{text}\n}}\n"))
}

fn problem(text: &str) -> Problem {
    match Module::parse(text) {
        Err(error) => error.problem,
        Ok(module) => {
            let problem = module.entries.into_iter().find_map(|entry| entry.problem);
            problem.expect("a problem").problem
        }
    }
}

#[test]
fn operands() {
    let name = |n: &str| Operand::Name(n.to_owned());
    assert_eq!(
        operands_of("{%r1, %r2}, %rd3").unwrap(),
        [
            Operand::Vector(vec!["%r1".to_owned(), "%r2".to_owned()]),
            name("%rd3")
        ]
    );
    assert_eq!(
        operands_of("[%rd1+-8], 0d4330000000000000").unwrap(),
        [
            Operand::Address("%rd1".to_owned(), -8),
            name("0d4330000000000000")
        ]
    );
    assert_eq!(
        operands_of("%r1|%p1, %r2, 0").unwrap(),
        [
            Operand::Pair("%r1".to_owned(), "%p1".to_owned()),
            name("%r2"),
            name("0")
        ]
    );
    for wrong in ["{%r1", "[%rd1+x]", "[%rd1] %r1", &"a,".repeat(129)] {
        assert!(operands_of(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_kernel_with_everything() {
    let text = "
.version 7.0
.target sm_70, debug
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .u32 numbers[2] = {1, 2};
.global .align 16 .b8 zeros[16];
.extern .global .u32 elsewhere;
.global .texref texture;
.func (.param .b32 result) helper(.param .b32 a)
{
	{ call nothing; }
}
/* a comment { over
   lines */
.visible .entry k(
	.param .u64 .ptr .global .align 16 k_param_0,
	.param .u32 k_param_1,
	.param .align 8 .b8 k_param_2[16]
)
.maxntid 128, 1, 1
.minnctapersm 1
{
	.reg .pred 	%p<2>;
	.shared .align 4 .b8 table[24];
	.loc 1 20 3
	ld.param.u64 	%rd1, [k_param_0]; // a comment
	{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }
	{ .reg .b32 tmp; }
$L__BB0_1:
	@!%p1 bra 	$L__BB0_1;
	ret;
}
";
    let module = Module::parse(text).unwrap();
    let entry = module.entry("k").unwrap();
    assert_eq!((module.entries.len(), &entry.problem), (1, &None));
    let parameters = entry.parameters.iter();
    let parameters: Vec<_> = parameters
        .map(|p| (p.kind.as_str(), p.offset, p.bytes))
        .collect();
    assert_eq!(
        parameters,
        [("u64", 0, 8), ("u32", 8, 4), ("b8[16]", 16, 16)]
    );
    assert_eq!(entry.threads, Some(Threads::AtMost(128)));
    assert_eq!(entry.shared_bytes, 24);
    assert_eq!(entry.shared_offset("table"), Some(0));
    assert_eq!(entry.shared_offset("dynamic"), Some(32));
    assert!(!entry.uses_dynamic_shared());
    assert_eq!(entry.registers.width("%p1"), Some(1));
    assert_eq!(entry.registers.width("%p2"), None);
    assert_eq!(entry.registers.width("tmp"), Some(32));
    let opcodes: Vec<_> = entry.statements.iter().map(|s| s.opcode.as_str()).collect();
    assert_eq!(opcodes, ["ld.param.u64", "mov.b64", "bra", "ret"]);
    assert_eq!(entry.labels["$L__BB0_1"], 2);
    let branch = &entry.statements[2];
    assert_eq!(branch.guard, Some(("%p1".to_owned(), true)));
    assert_eq!(branch.line, 31);
    let variable = |name| {
        let variable = entry.variable(name)?;
        Some((variable.bytes.as_slice(), variable.is_initialised))
    };
    let numbers = [1, 0, 0, 0, 2, 0, 0, 0];
    assert_eq!(variable("numbers"), Some((&numbers[..], true)));
    assert_eq!(variable("zeros"), Some((&[0; 16][..], false)));
    assert_eq!(variable("elsewhere").or(variable("texture")), None);
}

#[test]
fn what_is_not_understood_is_an_error() {
    assert!(body("ret;").is_ok());
    let entry = |text: &str| problem(&format!(".entry k() {{\n{text}\n}}\n"));
    assert_eq!(entry(".local .b8 depot[8];"), Problem::Directive);
    assert_eq!(entry(".reg .b128 %r<2>;"), Problem::Declaration);
    assert_eq!(entry(".shared .b8 x[];  .shared .b8 x[];"), {
        Problem::DuplicateName("x".to_owned())
    });
    assert_eq!(entry("L: L: ret;"), Problem::DuplicateName("L".to_owned()));
    let shadow = entry(".reg .b32 x; { .reg .b32 x; }");
    assert_eq!(shadow, Problem::DuplicateName("x".to_owned()));
    for (text, expected) in [
        (".entry k() { ret;", Problem::EndOfText),
        (".entry k() { ret", Problem::EndOfText),
        ("/* ", Problem::EndOfText),
        (".entry k() { } }", Problem::Unexpected),
        ("{ }", Problem::Unexpected),
        ("words;", Problem::Unexpected),
        (".entry k(.param .u64 a { }", Problem::Declaration),
        (".entry k(.param .what a) { }", Problem::Declaration),
        (".entry k(.param .align 0 .u64 a) { }", Problem::Declaration),
        (".entry k() .reqntid 8, 8 { }", Problem::Directive),
        (".entry k() .maxntid x { }", Problem::Number),
        (
            ".entry k(.param .b8 a[99999999]) { }",
            Problem::TooLarge("bytes"),
        ),
        (
            ".global .b8 a[67108864]; .global .b8 b[1];",
            Problem::TooLarge("bytes of variables"),
        ),
        (
            ".entry k() { } .entry k() { }",
            Problem::DuplicateName("k".to_owned()),
        ),
    ] {
        assert_eq!(problem(text), expected, "{text}");
    }
}

/// Texts that would cost a careless parser much time or memory.
#[test]
fn long_texts() {
    for unit in [":", "{", "a ", "a.b ", ".entry ", "\"", "L:", "a,a"] {
        let text = unit.repeat(2_000_000 / unit.len());
        assert!(Module::parse(&text).is_err(), "{unit}");
        let inside = Module::parse(&format!(".entry k() {{ {text}"));
        assert!(inside.is_err(), "{unit}");
    }
    let statements = "ret;".repeat(MAX_STATEMENTS + 1);
    let too_many = Problem::TooLarge("statements");
    assert_eq!(body(&statements).unwrap_err().problem, too_many);
    let too_long = " ".repeat(MAX_TEXT + 1);
    assert_eq!(problem(&too_long), Problem::TooLarge("text"));
}

use super::*;
use crate::SUPPORTED;
use crate::module::Module;

/// Decodes an entry point with these statements. All operand names of [`SUPPORTED`] are declared.
fn decode(statements: &str) -> Result<Program, PtxError> {
    let text = format!(
        ".entry k(.param .u64 param)
        {{
            .reg .b64 a, b, c, d, e, f, g, m, n;
            .reg .pred p, q;
            .shared .b8 table[16];
            label:
            {statements}
        }}"
    );
    Module::parse(&text).unwrap().entry("k").unwrap().decode()
}

fn problem(statement: &str) -> Problem {
    match decode(statement) {
        Err(error) => error.problem,
        Ok(_) => panic!("{statement} was taken"),
    }
}

/// All spellings that match a pattern.
fn spellings(pattern: &str) -> Vec<String> {
    let with = |start: &str, middle: &str, end: &str| {
        spellings(end)
            .into_iter()
            .map(|end| [start, middle, &end].concat())
            .collect::<Vec<_>>()
    };
    match pattern.find(['[', '{']) {
        None => vec![pattern.to_owned()],
        Some(at) if pattern[at..].starts_with('[') => {
            let (start, rest) = pattern.split_at(at);
            let (optional, rest) = rest[1..].split_once(']').unwrap();
            let with_it = [start, optional, rest].concat();
            [with(start, "", rest), spellings(&with_it)].concat()
        }
        Some(at) => {
            let (start, rest) = pattern.split_at(at);
            let (choices, rest) = rest[1..].split_once('}').unwrap();
            choices
                .split(',')
                .flat_map(|choice| with(start, choice, rest))
                .collect()
        }
    }
}

/// The results of a matrix product of this shape.
fn results(spelling: &str) -> String {
    let columns = spelling.split("m64n").nth(1);
    let columns = columns.and_then(|rest| rest.split('k').next());
    let count = columns.map_or(0, |columns| columns.parse::<usize>().unwrap() / 2);
    format!("{{{}}}", vec!["d"; count].join(", "))
}

#[test]
fn everything_that_is_listed_is_taken() {
    let mut count = 0;
    for form in SUPPORTED {
        for spelling in spellings(form.spelling) {
            assert!(form.matches(&spelling), "{spelling}");
            let operands = form.operands.replace("{d, ..}", &results(&spelling));
            let statement = format!("{spelling} {operands};");
            if let Err(error) = decode(&statement) {
                panic!("{error}");
            }
            // Every form refuses fewer operands, and more.
            if form.operands != "0" && !form.operands.is_empty() {
                assert!(decode(&format!("{spelling};")).is_err(), "{spelling}");
            }
            let more = format!("{spelling} {operands}, a;");
            assert!(decode(&more).is_err(), "{more}");
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn everything_else_is_refused() {
    for statement in [
        "add.f32 d, a, b;",
        "add.cc.u64 d, a, b;",
        "mad.lo.cc.s32 d, a, b, c;",
        "madc.wide.cc.u32 d, a, b, c;",
        "fma.rn.f64 d, a, b, c;",
        "ld.local.u32 d, [a];",
        "ld.u32 d, [a];",
        "ld.global.v4.f64 {d, e, f, g}, [a];",
        "atom.global.add.u32 d, [a], b;",
        "call helper;",
        "setp.lt.f64 p, a, b;",
        "cvt.s8.s32 d, a;",
        "vote.sync.any.pred p, q, a;",
        "",
        ".;",
        "@p;",
    ] {
        match statement {
            "" => assert!(decode(statement).is_ok()),
            ".;" => assert_eq!(problem(statement), Problem::Directive),
            _ => assert_eq!(problem(statement), Problem::Instruction, "{statement}"),
        }
    }
}

#[test]
fn names_and_numbers() {
    let unknown = |name: &str| Problem::UnknownName(name.to_owned());
    assert_eq!(problem("add.u32 d, a, x;"), unknown("x"));
    assert_eq!(problem("add.u32 5, a, b;"), unknown("5"));
    assert_eq!(problem("add.u32 table, a, b;"), unknown("table"));
    assert_eq!(problem("mov.u32 %tid.x, a;"), unknown("%tid.x"));
    assert_eq!(problem("mov.u32 d, %tid.y;"), unknown("%tid.y"));
    assert_eq!(problem("@!x ret;"), unknown("x"));
    assert_eq!(
        problem("setp.eq.and.s32 p, a, b, !q;"),
        unknown("!q"),
        "a negated operand is not the register"
    );
    assert_eq!(problem("bra nowhere;"), {
        Problem::UnknownLabel("nowhere".to_owned())
    });
    assert_eq!(problem("ld.param.u64 d, [other];"), {
        Problem::UnknownParameter("other".to_owned())
    });
    for (text, value) in [
        ("0", Some(0)),
        ("-1", Some(u64::MAX)),
        ("17U", Some(17)),
        ("0x1F", Some(31)),
        ("0d3ff0000000000000", Some(1f64.to_bits())),
        ("0d3ff", None),
        ("017", None),
        ("0b11", None),
        ("0x", None),
        ("-", None),
        ("--1", None),
        ("18446744073709551616", None),
        ("1e5", None),
    ] {
        assert_eq!(number(text), value, "{text}");
    }
    assert_eq!(problem("bar.sync 1;"), Problem::Operands);
    assert!(decode("mov.u64 d, table; mov.u32 e, %laneid; bra end; end:").is_ok());
}

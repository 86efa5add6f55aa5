use super::lanes8::Lanes8;
use super::portable::Portable;
use super::token::Token;
use crate::backend::lanes::testing::{check_products, check_select, check_step};

/// All block lengths, and one, two and more blocks of the longest.
const WIDTHS: [u32; 12] = [
    64, 128, 256, 512, 576, 768, 1024, 1088, 1536, 2048, 3072, 4096,
];

fn unit() -> Option<Lanes8<Token>> {
    let token = Token::detect().ok_or("this processor has no AVX-512 IFMA");
    crate::need::available("ifma", token).map(Lanes8)
}

#[test]
fn products() {
    let Some(unit) = unit() else { return };
    for bits in (64..=1344).step_by(64) {
        check_products(unit, bits, 40);
    }
    for bits in [1536, 2048, 2112, 3072, 4096, 6144, 16_384] {
        check_products(unit, bits, 8);
    }
}

#[test]
fn products_on_the_portable_unit() {
    for bits in WIDTHS {
        check_products(Lanes8(Portable), bits, 4);
    }
}

#[test]
fn look_up() {
    let Some(unit) = unit() else { return };
    for bits in WIDTHS {
        check_select(unit, bits);
    }
}

#[test]
fn look_up_on_the_portable_unit() {
    check_select(Lanes8(Portable), 512);
    check_select(Lanes8(Portable), 2048);
}

#[test]
fn step() {
    let Some(unit) = unit() else { return };
    for bits in WIDTHS {
        check_step(unit, bits);
    }
}

#[test]
fn step_on_the_portable_unit() {
    check_step(Lanes8(Portable), 512);
    check_step(Lanes8(Portable), 2048);
}

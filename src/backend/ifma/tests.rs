use super::lanes8::Lanes8;
use super::on_portable_unit;
use super::portable::Portable;
use super::token::Token;
use crate::backend::lanes::testing::{check_look_up, check_powers, check_products};

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
        check_look_up(unit, bits);
    }
}

#[test]
fn look_up_on_the_portable_unit() {
    check_look_up(Lanes8(Portable), 512);
    check_look_up(Lanes8(Portable), 2048);
}

/// Every window, and the number cut into one, two and three blocks.
#[test]
fn powers_on_the_portable_unit() {
    for exponent_bits in [0, 1, 2, 24, 25, 100, 101] {
        check_powers(&on_portable_unit(), 512, exponent_bits);
    }
    for bits in [896, 1536, 2112] {
        check_powers(&on_portable_unit(), bits, 110);
        check_powers(&on_portable_unit(), bits, 805);
    }
}

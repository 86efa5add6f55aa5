use batch_modexp_core::window::Window;

use super::lanes52::Lanes52;
use super::madd52::{Limb8, Madd52, Processor};
use super::testing::portable;
use super::{avx_ifma, avx512};
use crate::lanes::Lanes;
use crate::lanes::testing::check_squarings;
use crate::lanes::testing::{
    check_ladder, check_products, check_select, check_select_of_row, check_step, check_windows,
};
use crate::need;

/// Widths of all tile lengths, and one, two and more of the longest tiles.
const WIDTHS: [u32; 12] = [
    64, 128, 256, 512, 576, 768, 1024, 1088, 1536, 2048, 3072, 4096,
];

/// Widths of the longest tile and of two tiles.
const EMULATED: [u32; 3] = [64, 512, 1024];

/// Eight lanes with the code for each processor family, whatever this processor is.
fn eight() -> [Option<Lanes52<avx512::Token>>; 3] {
    [Processor::Other, Processor::Zen4, Processor::Intel].map(|processor| {
        let token = avx512::Token::detect_with_code_for(processor);
        let token = token.ok_or("this processor has no AVX-512 IFMA");
        need::available("avx512ifma", token).map(Lanes52)
    })
}

fn four() -> Option<Lanes52<avx_ifma::Token<false>>> {
    let token = avx_ifma::Token::<false>::detect().ok_or("this processor has no AVX-IFMA");
    need::available("avxifma", token).map(Lanes52)
}

/// Four lanes in the encoding of AVX-512.
fn four_by_evex() -> Option<Lanes52<avx_ifma::Token<true>>> {
    let token = avx_ifma::Token::<true>::detect();
    let token = token.ok_or("this processor has no AVX-512 IFMA of 256 bits");
    need::available("avx512ifma", token).map(Lanes52)
}

/// AVX-IFMA as compiled, on any processor with AVX2.
#[cfg(target_os = "linux")]
fn four_or_emulated() -> Option<Lanes52<avx_ifma::Token<false>>> {
    let token = avx_ifma::Token::detect_or_emulate().ok_or("this processor has no AVX2");
    need::available("fma", token).map(Lanes52)
}

#[test]
fn windows_of_eight_and_four_lanes() {
    let expected = [(100, 3), (256, 4), (320, 4), (321, 5), (512, 5), (1024, 5)];
    check_windows::<Lanes52<avx512::Token>>(&expected);
    check_windows::<Lanes52<avx_ifma::Token<false>>>(&expected);
}

fn check_all_products<T: Madd52>(unit: Option<Lanes52<T>>) {
    let Some(unit) = unit else { return };
    for bits in (64..=1344).step_by(64) {
        check_products(unit, bits, 40);
    }
    for bits in [1536, 2048, 2112, 3072, 4096, 6144, 16_384] {
        check_products(unit, bits, 8);
    }
}

#[test]
fn products() {
    eight().into_iter().for_each(check_all_products);
}

#[test]
fn products_in_four_lanes() {
    check_all_products(four());
}

#[test]
fn products_in_four_lanes_by_evex() {
    check_all_products(four_by_evex());
}

#[test]
fn products_on_the_portable_units() {
    for bits in WIDTHS {
        check_products(Lanes52(portable::EIGHT), bits, 4);
        check_products(Lanes52(portable::EIGHT_SAVING), bits, 4);
        check_products(Lanes52(portable::FOUR), bits, 8);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn products_by_the_encoding_of_avx_ifma() {
    let Some(unit) = four_or_emulated() else {
        return;
    };
    for bits in EMULATED {
        check_products(unit, bits, 4);
    }
}

/// Widths of one to four tiles: lengths that have special code, and others.
const SQUARINGS: [u32; 13] = [
    64, 128, 320, 512, 768, 1024, 1038, 1088, 1536, 2048, 2112, 3072, 4096,
];

fn check_all_squarings<T: Madd52>(unit: Option<Lanes52<T>>) {
    let Some(unit) = unit else { return };
    for bits in SQUARINGS {
        check_squarings(unit, bits);
    }
}

#[test]
fn squarings() {
    eight().into_iter().for_each(check_all_squarings);
    check_all_squarings(four());
    check_all_squarings(four_by_evex());
    check_all_squarings(Some(Lanes52(portable::EIGHT)));
    check_all_squarings(Some(Lanes52(portable::EIGHT_SAVING)));
    check_all_squarings(Some(Lanes52(portable::FOUR)));
}

fn check_look_up<T: Madd52>(unit: Option<Lanes52<T>>) {
    let Some(unit) = unit else { return };
    for bits in WIDTHS {
        check_select(unit, bits);
        check_select_of_row(unit, bits);
    }
}

#[test]
fn look_up() {
    eight().into_iter().for_each(check_look_up);
}

#[test]
fn look_up_in_four_lanes() {
    check_look_up(four());
    check_look_up(four_by_evex());
}

/// A look-up has no multiply-adds, so any processor with AVX2 can run it.
#[cfg(target_os = "linux")]
#[test]
fn look_up_by_the_encoding_of_avx_ifma() {
    check_look_up(four_or_emulated());
}

#[test]
fn look_up_on_the_portable_units() {
    for bits in [512, 2048] {
        check_select(Lanes52(portable::EIGHT), bits);
        check_select(Lanes52(portable::FOUR), bits);
        check_select_of_row(Lanes52(portable::EIGHT), bits);
        check_select_of_row(Lanes52(portable::FOUR), bits);
    }
}

fn check_steps<T: Madd52>(unit: Option<Lanes52<T>>) {
    let Some(unit) = unit else { return };
    for bits in WIDTHS {
        check_step(unit, bits);
    }
}

#[test]
fn step() {
    eight().into_iter().for_each(check_steps);
}

#[test]
fn step_in_four_lanes() {
    check_steps(four());
}

#[test]
fn step_in_four_lanes_by_evex() {
    check_steps(four_by_evex());
}

#[test]
fn step_on_the_portable_units() {
    for bits in [512, 1024, 2048] {
        check_step(Lanes52(portable::EIGHT), bits);
        check_step(Lanes52(portable::EIGHT_SAVING), bits);
        check_step(Lanes52(portable::FOUR), bits);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn step_by_the_encoding_of_avx_ifma() {
    let Some(unit) = four_or_emulated() else {
        return;
    };
    check_step(unit, 512);
}

/// Checks one to six tiles of 15 and 20 limbs, which may have halves, and others.
fn check_ladders<T: Madd52>(unit: Option<Lanes52<T>>) {
    let Some(unit) = unit else { return };
    for bits in [
        64, 512, 768, 960, 1024, 1088, 1536, 2048, 2304, 3072, 4096, 5120, 6144,
    ] {
        check_ladder(unit, bits);
    }
}

#[test]
fn ladder() {
    eight().into_iter().for_each(check_ladders);
}

#[test]
fn ladder_in_four_lanes() {
    check_ladders(four());
    check_ladders(four_by_evex());
}

#[test]
fn ladder_on_the_portable_units() {
    for bits in [512, 768, 1024, 1536, 3072] {
        check_ladder(Lanes52(portable::EIGHT), bits);
        check_ladder(Lanes52(portable::EIGHT_SAVING), bits);
        check_ladder(Lanes52(portable::FOUR), bits);
    }
}

/// Checks the choice of entries with halves.
#[test]
fn halves_where_they_save_time() {
    let (zen_4, other) = (Lanes52(portable::EIGHT_SAVING), Lanes52(portable::EIGHT));
    for (bits, on_zen_4, on_others) in [
        (512, false, false),
        (768, false, false),
        (960, false, false),
        (1024, true, false),
        (1088, false, false),
        (1536, true, false),
        (2048, true, true),
        (3072, true, true),
        (4096, true, true),
        (16_384, true, true),
    ] {
        let limbs = Lanes52::<portable::Portable<Limb8>>::limb_count(bits);
        for (window, suffices) in [(1, false), (2, false), (3, true), (4, true), (5, true)] {
            let window = Window::new(window).unwrap();
            let len = |halves| if halves && suffices { 2 } else { 1 } * limbs;
            assert_eq!(zen_4.entry_len(limbs, window), len(on_zen_4), "{bits} bits");
            assert_eq!(
                other.entry_len(limbs, window),
                len(on_others),
                "{bits} bits"
            );
            assert_eq!(Lanes52(portable::FOUR).entry_len(limbs, window), limbs);
        }
    }
}

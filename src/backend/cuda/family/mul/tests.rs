//! Tests of the parent module.

use super::super::int;
use super::*;

fn entry(bits: u32) -> &'static Entry {
    let of_width = |entry: &&Entry| entry.operation == Operation::ModMul && entry.bits == bits;
    int::ENTRIES.iter().find(of_width).unwrap()
}

/// The parameters of `modmul_BITS_t1` as `kernels/README.md` lists them.
#[test]
fn arguments_of_products() {
    let entry = entry(384);
    let grid = Grid::new(&entry.image, 132);
    for (form, ordinary) in [(Form::Ordinary, 1), (Form::Montgomery, 0)] {
        let chunk = ModMulChunk {
            count: 1001,
            moduli: 7,
            form,
        };
        let work = launch(entry, grid, &chunk);
        let [launch] = work.launches.as_slice() else {
            panic!("one launch");
        };
        let [product, a, b, moduli, index, numbers @ ..] = launch.arguments() else {
            panic!("eight parameters");
        };
        assert_eq!(*product, Argument::Words(work.product));
        assert_eq!(*a, Argument::Words(work.a));
        assert_eq!(*b, Argument::Words(work.b));
        assert_eq!(*moduli, Argument::Words(work.moduli));
        let expected = Argument::Indices {
            part: work.modulus_index,
            count: 1001,
            records: work.moduli,
            size: 2 * 6,
        };
        assert_eq!(*index, expected);
        assert_eq!(*numbers, [1001, ordinary, 1].map(Argument::U32));
        // Six 64-bit words in a number.
        assert_eq!([work.product, work.a, work.b].map(Part::len), [6006; 3]);
        assert_eq!((work.moduli.len(), work.modulus_index.len()), (84, 501));
    }
}

#[test]
fn forecasts_follow_multiplications_and_clock() {
    let device = DeviceInfo::imaginary(100, 227 << 10);
    let ms = |bits, count| milliseconds(entry(bits), &device, count);
    assert_eq!(ms(512, 1000), 4.0 * ms(256, 1000));
    assert_eq!(ms(128, 2000), 2.0 * ms(128, 1000));
    // 2 * 16 * 16 limb products, 28 of them in a clock of 1 GHz on each of 100 multiprocessors.
    assert!((ms(512, 2_800_000) - 0.512).abs() < 1e-9);
}

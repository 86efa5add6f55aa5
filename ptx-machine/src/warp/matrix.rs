//! Matrix products. Each warp computes its own rows, so the products pass no data between warps.
//!
//! A device computes them while the warp continues. Here they are computed at once, and the checks
//! ensure that the warp could not have noticed the difference.

use super::{ALL, Memory, Warp};
use crate::fault::{Fault, Location};
use crate::program::{Instruction, MatrixProduct, Op, Program, Reg};
use crate::taint::{self, Lanes};

/// Rows of a warp, bytes in each row, and adjacent columns.
const ROWS: usize = 16;
const DEPTH: usize = 32;
const COLUMNS: usize = 8;
/// Adjacent bytes of the depth.
const TOGETHER: usize = 16;

/// The products that a warp has started, and its accesses to the registers that they use.
pub(super) struct Products {
    /// For each register the step that last wrote it, other than as a sum. Empty for a program
    /// without products.
    written: Vec<u64>,
    fenced: u64,
    /// Registers of the products under way: sums, rows, and the number of groups that were closed
    /// before.
    started: Vec<(Vec<Reg>, [Reg; 4], usize)>,
    groups: usize,
}

impl Products {
    pub(super) fn new(program: &Program) -> Self {
        let started = |instruction: &Instruction| matches!(instruction.op, Op::MatrixProduct(_));
        match program.instructions.iter().any(started) {
            true => Self::with_registers(program.register_count),
            false => Self::with_registers(0),
        }
    }

    fn with_registers(register_count: usize) -> Self {
        Self {
            written: vec![0; register_count],
            fenced: 0,
            started: Vec::new(),
            groups: 0,
        }
    }

    /// Checks that an instruction does not touch registers of products under way, and records its
    /// writes.
    pub(super) fn check(&mut self, instruction: &Instruction, step: u64) -> Result<(), Fault> {
        if self.written.is_empty() {
            return Ok(());
        }
        let guard = instruction.guard.map(|(predicate, _)| predicate);
        for (sums, rows, _) in &self.started {
            let mut read = instruction.reads.iter().chain(&guard);
            let mut written = instruction.writes.iter();
            if read.any(|reg| sums.contains(reg))
                || written.any(|reg| sums.contains(reg) || rows.contains(reg))
            {
                return Err(Fault::InFlight);
            }
        }
        for &reg in &instruction.writes {
            self.written[reg] = step;
        }
        Ok(())
    }

    pub(super) fn fence(&mut self, step: u64) {
        self.fenced = step;
    }

    pub(super) fn commit(&mut self) {
        self.groups += 1;
    }

    /// Waits until at most `pending` groups are under way. Products outside of groups stay under
    /// way.
    pub(super) fn wait(&mut self, pending: usize) {
        let done = self.groups.saturating_sub(pending);
        self.started.retain(|(_, _, group)| *group >= done);
    }

    /// Checks that no product is under way.
    pub(super) fn none_left(&self) -> Result<(), Fault> {
        match self.started.is_empty() {
            true => Ok(()),
            false => Err(Fault::InFlight),
        }
    }

    /// Starts a product. Consecutive products may use the same sums.
    fn start(&mut self, product: &MatrixProduct) -> Result<(), Fault> {
        let mut all = product.sums.iter().chain(&product.rows);
        if all.any(|&reg| self.written[reg] > self.fenced) {
            return Err(Fault::Unfenced);
        }
        for (sums, rows, _) in &self.started {
            let shared = |reg: &Reg| sums.contains(reg);
            let same = *sums == product.sums;
            if product.rows.iter().any(shared)
                || (!same && product.sums.iter().any(shared))
                || product.sums.iter().any(|reg| rows.contains(reg))
            {
                return Err(Fault::InFlight);
            }
        }
        self.started
            .push((product.sums.clone(), product.rows, self.groups));
        Ok(())
    }
}

/// The layout of a matrix in shared memory: its start, and the distances in bytes between groups of
/// 16 rows and groups of 8 columns.
struct Layout {
    start: u64,
    row_stride: u64,
    column_stride: u64,
}

impl Layout {
    /// Decodes a "Matrix descriptor" of the PTX ISA, for a factor in column order without
    /// swizzling.
    fn new(descriptor: u64) -> Result<Self, Fault> {
        let field = |shift: u32| (descriptor >> shift & 0x3fff) << 4;
        let known = 0x3fff | 0x3fff << 16 | 0x3fff << 32;
        if descriptor & !known != 0 {
            return Err(Fault::MatrixLayout);
        }
        Ok(Self {
            start: field(0),
            row_stride: field(16),
            column_stride: field(32),
        })
    }

    /// The address of the first of 16 bytes of a column.
    fn address(&self, column: usize, half: usize) -> u64 {
        self.start
            + half as u64 * self.row_stride
            + (column / COLUMNS) as u64 * self.column_stride
            + (column % COLUMNS * TOGETHER) as u64
    }
}

impl Warp<'_> {
    pub(super) fn matrix_product(
        &mut self,
        product: &MatrixProduct,
        lanes: u32,
        memory: &mut Memory<'_>,
    ) -> Result<(), Fault> {
        if lanes != ALL || !memory.threads_per_block.is_multiple_of(128) {
            return Err(Fault::NotConverged);
        }
        let secret = self.taint[product.matrix];
        if secret != 0 {
            return Err(Fault::SecretAddress { bits: secret });
        }
        if self.taint[product.keep] != 0 {
            return Err(Fault::SecretBranch);
        }
        let descriptor = self.regs[product.matrix];
        let keep = self.regs[product.keep];
        let differs = |lanes: &Lanes| lanes.iter().any(|value| *value != lanes[0]);
        if differs(&descriptor) || differs(&keep) {
            return Err(Fault::NotConverged);
        }
        let layout = Layout::new(descriptor[0])?;
        self.products.start(product)?;
        let rows = self.rows(&product.rows);
        let mut secret = product
            .rows
            .iter()
            .fold(0, |all, &reg| all | self.taint[reg]);
        for block in 0..product.sums.len() / 4 {
            let mut columns = [[0; DEPTH]; COLUMNS];
            for (number, column) in columns.iter_mut().enumerate() {
                for half in 0..2 {
                    let address = layout.address(block * COLUMNS + number, half);
                    let place = &mut column[half * TOGETHER..][..TOGETHER];
                    secret |= read_column(memory, address, place)?;
                }
            }
            // Each lane has four sums: two columns of its first row, and two of its second.
            for number in 0..4 {
                let sum = product.sums[4 * block + number];
                let before = self.regs[sum];
                let value = core::array::from_fn(|lane| {
                    let row = &rows[lane / 4 + 8 * (number / 2)];
                    let column = &columns[2 * (lane % 4) + number % 2];
                    let kept = if keep[0] & 1 == 1 {
                        before[lane] as u32
                    } else {
                        0
                    };
                    u64::from(kept.wrapping_add(inner_product(row, column)))
                });
                let kept = if keep[0] & 1 == 1 { self.taint[sum] } else { 0 };
                self.set(
                    sum,
                    value,
                    taint::any(secret | kept) & u64::from(u32::MAX),
                    lanes,
                );
            }
        }
        Ok(())
    }

    /// The bytes of the warp's rows. In rows g and g + 8, lane 4 g + t has the bytes 4 t .. 4 t + 4
    /// and those 16 further on.
    pub(super) fn rows(&self, regs: &[Reg; 4]) -> [[i16; DEPTH]; ROWS] {
        let mut rows = [[0; DEPTH]; ROWS];
        for (number, &reg) in regs.iter().enumerate() {
            for (lane, value) in self.regs[reg].iter().enumerate() {
                let row = &mut rows[lane / 4 + 8 * (number % 2)];
                let at = 4 * (lane % 4) + TOGETHER * (number / 2);
                place_bytes(&mut row[at..at + 4], *value);
            }
        }
        rows
    }

    /// The bytes of eight columns. In column g, lane 4 g + t has the bytes 4 t .. 4 t + 4 and those
    /// 16 further on.
    pub(super) fn columns(&self, regs: &[Reg; 2]) -> [[i16; DEPTH]; COLUMNS] {
        let mut columns = [[0; DEPTH]; COLUMNS];
        for (half, &reg) in regs.iter().enumerate() {
            for (lane, value) in self.regs[reg].iter().enumerate() {
                let at = 4 * (lane % 4) + TOGETHER * half;
                place_bytes(&mut columns[lane / 4][at..at + 4], *value);
            }
        }
        columns
    }

    pub(super) fn permute(&mut self, [to, low, high, selector]: [Reg; 4], lanes: u32) {
        let byte = |word: u64, number: u64| word >> (8 * number) & 0xff;
        let permute = |low: u64, high: u64, selector: u64| {
            let word = low & u64::from(u32::MAX) | high << 32;
            (0..4).fold(0, |result, at| {
                let choice = selector >> (4 * at) & 0xf;
                let chosen = byte(word, choice & 7);
                let sign = if chosen >> 7 == 1 { 0xff } else { 0 };
                result | (if choice & 8 == 0 { chosen } else { sign }) << (8 * at)
            })
        };
        let value = core::array::from_fn(|lane| {
            let [low, high, selector] = [low, high, selector].map(|reg| self.regs[reg][lane]);
            permute(low, high, selector)
        });
        let (secret_low, secret_high) = (self.taint[low], self.taint[high]);
        let tainted = match self.taint[selector] {
            0 => self.regs[selector].iter().fold(0, |all, &selector| {
                // A copied sign depends only on the highest bit of its byte.
                all | permute(secret_low, secret_high, selector)
            }),
            _ => u64::from(u32::MAX),
        };
        self.set(to, value, tainted, lanes);
    }
}

/// The sum of the products of bytes.
pub(super) fn inner_product(row: &[i16; DEPTH], column: &[i16; DEPTH]) -> u32 {
    // In these types most processors have an instruction for several products at once.
    let terms = row.iter().zip(column);
    terms
        .map(|(&a, &b)| i32::from(a) * i32::from(b))
        .sum::<i32>() as u32
}

/// Splits the low bytes of `value` into `places`.
fn place_bytes(places: &mut [i16], value: u64) {
    for (place, byte) in places.iter_mut().zip(value.to_le_bytes()) {
        *place = byte.into();
    }
}

/// Reads 16 bytes of a column, and returns their taint.
fn read_column(memory: &mut Memory<'_>, address: u64, place: &mut [i16]) -> Result<u64, Fault> {
    let mut tainted = 0;
    for (number, eight) in place.chunks_exact_mut(8).enumerate() {
        let address = address + 8 * number as u64;
        let value = memory.shared.read::<8>(address);
        let (value, taint) = value.map_err(|denied| denied.at(Location::Shared(address)))?;
        memory.touched.read_async(memory.warp, address, 8)?;
        place_bytes(eight, value);
        tainted |= taint;
    }
    Ok(tainted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(op: Op) -> Instruction {
        Instruction::new(None, op)
    }

    fn product(sums: &[Reg]) -> MatrixProduct {
        MatrixProduct {
            sums: sums.to_vec(),
            rows: [10, 11, 12, 13],
            matrix: 14,
            keep: 15,
        }
    }

    fn copy(to: Reg, from: Reg) -> Instruction {
        instruction(Op::NegateFloat([to, from]))
    }

    #[test]
    fn registers_of_a_product_are_left_alone_until_it_is_done() {
        let mut products = Products::with_registers(20);
        products.fence(1);
        products.start(&product(&[0, 1, 2, 3])).unwrap();
        // Reusing the sums, and reading the rows, is allowed.
        products.start(&product(&[0, 1, 2, 3])).unwrap();
        assert_eq!(products.check(&copy(16, 10), 2), Ok(()));
        for (to, from) in [(16, 0), (3, 16), (11, 16)] {
            assert_eq!(products.check(&copy(to, from), 2), Err(Fault::InFlight));
        }
        let crossed = products.start(&product(&[3, 4, 5, 6]));
        assert_eq!(crossed, Err(Fault::InFlight));
        products.commit();
        products.start(&product(&[4, 5, 6, 7])).unwrap();
        products.commit();
        products.wait(1);
        assert_eq!(products.check(&copy(16, 0), 3), Ok(()));
        assert_eq!(products.check(&copy(16, 4), 3), Err(Fault::InFlight));
        assert_eq!(products.none_left(), Err(Fault::InFlight));
        products.wait(0);
        assert_eq!(products.none_left(), Ok(()));
    }

    #[test]
    fn registers_that_are_written_want_a_fence() {
        let mut products = Products::with_registers(20);
        products.fence(1);
        products.check(&copy(10, 16), 2).unwrap();
        assert_eq!(
            products.start(&product(&[0, 1, 2, 3])),
            Err(Fault::Unfenced)
        );
        products.fence(3);
        assert_eq!(products.start(&product(&[0, 1, 2, 3])), Ok(()));
    }

    #[test]
    fn layouts() {
        let layout = Layout::new(0x8 << 32 | 0x90 << 16 | 0x100).unwrap();
        assert_eq!(layout.address(0, 0), 0x1000);
        assert_eq!(layout.address(9, 1), 0x1000 + 0x900 + 0x80 + 16);
        // A swizzled layout, and one with an offset of its base.
        for descriptor in [1 << 62, 1 << 49] {
            assert!(Layout::new(descriptor).is_err());
        }
    }
}

//! Instructions that name lanes of the warp.

use super::{Warp, active_lanes};
use crate::fault::Fault;
use crate::program::{Reg, Shuffle};

impl Warp<'_> {
    pub(super) fn shuffle(
        &mut self,
        mode: Shuffle,
        to: Reg,
        valid: Option<Reg>,
        [from, lane, clamp]: [Reg; 3],
        lanes: u32,
    ) -> Result<(), Fault> {
        if self.taint[lane] | self.taint[clamp] != 0 {
            return Err(Fault::SecretLane);
        }
        let mut value = [0; 32];
        let mut in_range = [0; 32];
        for own in active_lanes(lanes) {
            let (b, c) = (self.regs[lane][own] & 31, self.regs[clamp][own]);
            let (source, inside) = source_lane(mode, own as u64, b, c & 31, c >> 8 & 31);
            if lanes >> source & 1 == 0 {
                return self.in_lane(own, Err(Fault::NotConverged));
            }
            value[own] = self.regs[from][source as usize];
            in_range[own] = u64::from(inside);
        }
        let tainted = self.taint[from];
        self.set(to, value, tainted, lanes);
        if let Some(valid) = valid {
            self.set(valid, in_range, 0, lanes);
        }
        Ok(())
    }
}

/// The source lane of a shuffle, and whether it is in the segment (PTX ISA, `shfl.sync`).
fn source_lane(mode: Shuffle, own: u64, b: u64, clamp: u64, segment: u64) -> (u64, bool) {
    let first = own & segment;
    let last = first | (clamp & !segment);
    let (source, inside) = match mode {
        Shuffle::Up => (own.wrapping_sub(b), own as i64 - b as i64 >= last as i64),
        Shuffle::Down => (own + b, own + b <= last),
        Shuffle::Butterfly => (own ^ b, own ^ b <= last),
        Shuffle::Index => {
            let source = first | (b & !segment);
            (source, source <= last)
        }
    };
    if inside { (source, true) } else { (own, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_in_segments_of_four() {
        // c of __shfl_sync(.., 4): segment mask 28, clamp 3.
        let source = |mode, own, b| source_lane(mode, own, b, 3, 28);
        assert_eq!(source(Shuffle::Index, 6, 1), (5, true));
        assert_eq!(source(Shuffle::Index, 6, 5), (5, true));
        assert_eq!(source(Shuffle::Down, 6, 1), (7, true));
        assert_eq!(source(Shuffle::Down, 7, 1), (7, false));
        assert_eq!(source(Shuffle::Butterfly, 6, 1), (7, true));
        assert_eq!(source_lane(Shuffle::Up, 5, 1, 0, 28), (4, true));
        assert_eq!(source_lane(Shuffle::Up, 4, 1, 0, 28), (4, false));
    }
}

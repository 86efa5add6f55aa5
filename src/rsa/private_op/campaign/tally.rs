//! Counts of outcomes and the report.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt::Write as _;

use super::fault::{Kind, Place};
use super::rig::Outcome;

/// Counts of outcomes for each place and kind.
#[derive(Default)]
pub(super) struct Tally(BTreeMap<(Place, Kind), Counts>);

#[derive(Clone, Copy, Default)]
struct Counts {
    harmless: u64,
    caught: u64,
    refused: u64,
    other_block: u64,
    escaped: u64,
}

impl Tally {
    pub(super) fn count(&mut self, place: Place, kind: Kind, outcome: Outcome) {
        let counts = self.0.entry((place, kind)).or_default();
        *match outcome {
            Outcome::Harmless => &mut counts.harmless,
            Outcome::Caught => &mut counts.caught,
            Outcome::Refused => &mut counts.refused,
            Outcome::OtherBlock => &mut counts.other_block,
            Outcome::Escaped => &mut counts.escaped,
        } += 1;
    }

    /// The number of faults with this outcome in one place, or in all.
    pub(super) fn sum(&self, place: Option<Place>, outcome: Outcome) -> u64 {
        let here = |hit: Place| place.is_none_or(|place| place == hit);
        let entries = self.0.iter().filter(|((hit, _), _)| here(*hit));
        let count = entries.map(|(_, counts)| match outcome {
            Outcome::Harmless => counts.harmless,
            Outcome::Caught => counts.caught,
            Outcome::Refused => counts.refused,
            Outcome::OtherBlock => counts.other_block,
            Outcome::Escaped => counts.escaped,
        });
        count.sum()
    }

    /// The titles of the columns of [`csv`](Self::csv).
    pub(super) const TITLES: &str =
        "backend,check,place,kind,faults,harmless,caught,refused,other_block,escaped";

    /// A line for each place and kind.
    pub(super) fn csv(&self, backend: &str, check: &str) -> String {
        let mut lines = String::new();
        for ((place, kind), counts) in &self.0 {
            let Counts {
                harmless,
                caught,
                refused,
                other_block,
                escaped,
            } = counts;
            let faults = harmless + caught + refused + other_block + escaped;
            let (place, kind) = (place.name(), kind.name());
            let _ = writeln!(
                lines,
                "{backend},{check},{place},{kind},{faults},{harmless},{caught},{refused},{other_block},{escaped}"
            );
        }
        lines
    }
}

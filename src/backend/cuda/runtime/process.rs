//! Which process a value belongs to: CUDA does not outlive a fork.

/// The process that made a value.
///
/// A child that was forked has the memory of its parent, but neither its threads nor its CUDA contexts: every
/// call of the driver would fail or hang there, and pinned memory may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    /// The process that runs this.
    pub(crate) fn current() -> Self {
        Self(std::process::id())
    }

    /// Whether this runs in another process than the value was made in: in a forked child.
    pub(crate) fn is_left(self) -> bool {
        self.0 != std::process::id()
    }

    /// A process that this one is not.
    #[cfg(test)]
    pub(crate) fn other() -> Self {
        Self(std::process::id().wrapping_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_processes_apart() {
        assert!(!Process::current().is_left());
        assert!(Process::other().is_left());
    }
}

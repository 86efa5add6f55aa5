//! The process that a value belongs to, because CUDA does not survive a fork.

/// The process that made a value.
///
/// A forked child has the memory of its parent, but neither its threads nor its CUDA contexts.
/// Every driver call would fail or hang there, and pinned memory may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    /// The current process.
    pub(crate) fn current() -> Self {
        Self(std::process::id())
    }

    /// Whether the current process is another one, that is, a forked child.
    pub(crate) fn is_left(self) -> bool {
        self.0 != std::process::id()
    }

    /// Some process other than the current one.
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

//! `Backoff`: how often to ask a search that seldom finds anything.

/// When a search is asked again: always while it wins, and after each loss in a row only when twice
/// as many turns as before have passed (as the scheduler of egg does with rules).
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    losses: u32,
    /// Turns to wait.
    wait: u32,
}

/// Most losses that count.
const MOST: u32 = 8;

impl Backoff {
    /// Whether it is its turn; each call is a turn.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    /// Records what came of being asked.
    pub fn record(&mut self, won: bool) {
        self.losses = if won { 0 } else { (self.losses + 1).min(MOST) };
        self.wait = (1 << self.losses) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_loses_is_asked_less_and_less_until_it_wins() {
        let mut backoff = Backoff::default();
        let mut asked = Vec::new();
        for turn in 0..40 {
            if backoff.is_due() {
                asked.push(turn);
                backoff.record(turn > 20);
            }
        }
        assert_eq!(asked, [0, 2, 6, 14, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
    }
}

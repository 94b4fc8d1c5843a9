//! Which rules are matched in an iteration.

/// How rules take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// All rules in every iteration.
    #[default]
    Simple,
    /// A rule that matches more than `matches` times pauses for `pause` iterations, and may match
    /// twice as often, and pauses twice as long, the next time (egg's default, with 1000 and 5).
    Backoff {
        /// Most matches in an iteration.
        matches: usize,
        /// Iterations of the first pause.
        pause: usize,
    },
}

/// Whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    schedule: Schedule,
    rules: Vec<Turn>,
}

#[derive(Clone, Debug, Default)]
struct Turn {
    /// Whether it is matched in this iteration.
    is_due: bool,
    /// Whether it is matched everywhere: it has missed changes.
    is_behind: bool,
    /// Whether matches of it were left out, to be found again.
    has_missed: bool,
    found: usize,
    /// How often it has paused.
    pauses: u32,
    /// The iteration in which it may match again.
    until: usize,
}

impl Turns {
    pub(crate) fn new(schedule: Schedule, rules: usize) -> Turns {
        Turns { schedule, rules: vec![Turn::default(); rules] }
    }

    /// Begins an iteration; rules that are not due are not matched from now on.
    pub(crate) fn begin(&mut self, iteration: usize, is_due: &dyn Fn(usize) -> bool) {
        for (rule, turn) in self.rules.iter_mut().enumerate() {
            let is_due = is_due(rule) && iteration >= turn.until;
            turn.is_behind |= !is_due;
            (turn.is_due, turn.found) = (is_due, 0);
        }
    }

    /// Whether a rule is matched at a place, near a change or not.
    pub(crate) fn asks(&self, rule: usize, is_near: bool) -> bool {
        let turn = &self.rules[rule];
        turn.is_due && (is_near || turn.is_behind)
    }

    /// So many more matches of a rule.
    pub(crate) fn found(&mut self, rule: usize, count: usize) {
        self.rules[rule].found += count;
    }

    /// Ends an iteration: the rules that have matched too often, and pause.
    pub(crate) fn end(&mut self, iteration: usize) -> Vec<usize> {
        let mut pausing = Vec::new();
        for (rule, turn) in self.rules.iter_mut().enumerate().filter(|(_, turn)| turn.is_due) {
            (turn.is_behind, turn.has_missed) = (false, false);
            if let Schedule::Backoff { matches, pause } = self.schedule
                && turn.found > matches << turn.pauses.min(32)
            {
                turn.until = iteration + 1 + (pause << turn.pauses.min(32));
                turn.pauses += 1;
                turn.is_behind = true;
                pausing.push(rule);
            }
        }
        pausing
    }

    /// Some matches of a rule were left out.
    pub(crate) fn missed(&mut self, rule: usize) {
        let turn = &mut self.rules[rule];
        (turn.is_behind, turn.has_missed) = (true, true);
    }

    /// Whether matches were left out that no pause explains.
    pub(crate) fn has_missed(&self) -> bool {
        self.rules.iter().any(|turn| turn.has_missed)
    }

    /// Ends the pause of those whose turn is next, if any rule has missed something; whether one
    /// has.
    pub(crate) fn skip(&mut self, iteration: usize) -> bool {
        let waiting = self.rules.iter().filter(|turn| turn.is_behind && turn.until > 0);
        let Some(next) = waiting.map(|turn| turn.until).min() else { return false };
        let early = next.saturating_sub(iteration);
        self.rules.iter_mut().for_each(|turn| turn.until = turn.until.saturating_sub(early).max(usize::from(turn.until > 0)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_matches_too_often_pauses_longer_each_time() {
        let mut turns = Turns::new(Schedule::Backoff { matches: 2, pause: 3 }, 2);
        let mut asked = Vec::new();
        for iteration in 0..14 {
            turns.begin(iteration, &|_| true);
            assert!(turns.asks(1, true));
            if turns.asks(0, false) || turns.asks(0, true) {
                asked.push(iteration);
                turns.found(0, 5);
            }
            turns.end(iteration);
        }
        // It may match twice, then four times, then eight times: five are not too many by then.
        assert_eq!(asked, [0, 4, 11, 12, 13]);
        assert!(!turns.skip(14));
        let mut turns = Turns::new(Schedule::Backoff { matches: 2, pause: 3 }, 1);
        turns.begin(0, &|_| true);
        turns.found(0, 5);
        turns.end(0);
        assert!(turns.skip(1), "it has missed something");
        turns.begin(1, &|_| true);
        assert!(turns.asks(0, false), "and its turn has come");
    }
}

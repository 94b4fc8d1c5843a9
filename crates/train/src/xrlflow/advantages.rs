//! How much better an action was than what was expected (Schulman and others, "Generalized
//! advantage estimation", 2016, section 3).

use regraft_xrlflow::Settings;

use super::episode::{End, Step};

/// For each step of some episodes: its advantage, and what was earned from there.
pub fn advantages(steps: &[Step], settings: &Settings) -> Vec<(f32, f32)> {
    let Settings { discount, lambda, .. } = *settings;
    let crossing = settings.defects.crossing_advantages;
    let mut all = vec![(0.0, 0.0); steps.len()];
    let mut advantage = 0.0;
    for (at, step) in steps.iter().enumerate().rev() {
        let next = steps.get(at + 1);
        let (after, goes_on) = match step.end {
            Some(End::Stopped) => (0.0, 0.0),
            // As published: the next episode's first value, as if it went on there.
            Some(End::CutOff(_)) | None if crossing => (next.map_or(0.0, |next| next.value), 1.0),
            Some(End::CutOff(value)) => (value, 0.0),
            None => (next.map_or(0.0, |next| next.value), 1.0),
        };
        // As published, the last step of all is not compared with its value.
        let expected = if crossing && next.is_none() { 0.0 } else { step.value };
        advantage = step.reward + discount * after - expected + discount * lambda * goes_on * advantage;
        all[at] = (advantage, advantage + step.value);
    }
    all
}

#[cfg(test)]
mod tests {
    use regraft_xrlflow::{Defects, Settings};

    use super::*;

    fn step(reward: f32, value: f32, end: Option<End>) -> Step {
        Step { pools: vec![], action: 0, likely: 0.0, value, reward, end }
    }

    /// Two episodes, the first of which is cut off.
    fn steps() -> Vec<Step> {
        vec![step(1.0, 0.5, None), step(2.0, 1.0, Some(End::CutOff(3.0))), step(0.0, 100.0, None), step(4.0, 2.0, Some(End::Stopped))]
    }

    #[test]
    fn an_episode_that_was_cut_off_ends_with_the_value_of_its_last_state() {
        let settings = Settings { discount: 1.0, lambda: 1.0, ..Settings::default() };
        let returns: Vec<f32> = advantages(&steps(), &settings).iter().map(|(_, earned)| *earned).collect();
        assert_eq!(returns, [6.0, 5.0, 4.0, 4.0]);
    }

    #[test]
    fn the_defect_reads_on_in_the_next_episode() {
        let defects = Defects { crossing_advantages: true, ..Defects::default() };
        let settings = Settings { discount: 1.0, lambda: 1.0, defects, ..Settings::default() };
        let returns: Vec<f32> = advantages(&steps(), &settings).iter().map(|(_, earned)| *earned).collect();
        assert_eq!(returns, [9.0, 8.0, 6.0, 6.0], "the last step counts its own value twice");
    }
}

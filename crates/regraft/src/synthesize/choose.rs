//! Which layer gets which operator.

/// What can be done with one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Of each operator: how much longer it takes than the layer, ns, and the square of its error.
    pub options: Vec<(f64, f64)>,
    /// How much the square of an error here adds to that of the outputs.
    pub sensitivity: f64,
}

/// For each layer the option that it gets, if any.
pub type Choice = Vec<Option<usize>>;

/// How finely the price of an error is varied.
const STEPS: usize = 60;

/// At most so many different choices, from few replaced layers to many: each takes the least time
/// that is possible with errors no larger, or nearly (the knapsack's convex hull, by Lagrange
/// multipliers).
pub fn choices(items: &[Item], most: usize) -> Vec<Choice> {
    let ratios = items
        .iter()
        .flat_map(|item| item.options.iter().filter(|(ns, _)| *ns < 0.0).map(|(ns, e)| -ns / (e * item.sensitivity).max(1e-18)));
    let (low, high) = ratios.fold((f64::INFINITY, 0.0f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
    if high <= 0.0 {
        return vec![];
    }
    let mut found: Vec<Choice> = Vec::new();
    for step in 0..=STEPS {
        // From prices at which nothing pays to those at which everything does.
        let price = high * 1.01 * (low * 0.5 / high).powf(step as f64 / STEPS as f64);
        let choice = items.iter().map(|item| best(item, price)).collect::<Choice>();
        if choice.iter().any(Option::is_some) && !found.contains(&choice) {
            found.push(choice);
        }
    }
    // Evenly spread, both ends included.
    let spread = |k: usize| k * (found.len() - 1) / (most - 1).max(1);
    if found.len() > most { (0..most).map(|k| found[spread(k)].clone()).collect() } else { found }
}

/// The option with the least time, an error being paid for at a price.
fn best(item: &Item, price: f64) -> Option<usize> {
    let cost = |option: usize| item.options[option].0 + price * item.sensitivity * item.options[option].1;
    (0..item.options.len()).filter(|option| cost(*option) < 0.0).min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_errors_are_bought_first() {
        let item = |options: &[(f64, f64)], sensitivity| Item { options: options.to_vec(), sensitivity };
        let items = [item(&[(-10.0, 0.1), (-20.0, 0.4)], 1.0), item(&[(-10.0, 0.1)], 10.0), item(&[(5.0, 0.0)], 1.0)];
        let found = choices(&items, 10);
        assert_eq!(found.first().unwrap(), &vec![Some(0), None, None]);
        assert_eq!(found.last().unwrap(), &vec![Some(1), Some(0), None]);
        assert!(found.iter().all(|choice| choice[2].is_none()), "an operator that is slower is never chosen");
        assert_eq!(choices(&items, 2).len(), 2);
        assert!(choices(&items[2..], 10).is_empty());
    }
}

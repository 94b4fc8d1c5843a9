//! Curves of a training as a drawing.

/// A drawing of curves over the steps of a training.
pub struct Curves<'c> {
    /// What is drawn.
    pub title: &'c str,
    /// What the curves go over, under the last place.
    pub over: &'c str,
    /// Least and greatest value, each with its text at the left.
    pub range: (f64, f64),
    /// How a value is written at the left.
    pub label: &'c dyn Fn(f64) -> String,
    /// Name and points of each curve.
    pub lines: Vec<(&'c str, Vec<(f64, f64)>)>,
}

const SIZE: (f64, f64) = (640.0, 320.0);
const EDGE: f64 = 48.0;
/// Dark enough on white.
const COLORS: [&str; 3] = ["#0b62a4", "#1a7f37", "#b35900"];

impl Curves<'_> {
    /// As SVG.
    pub fn svg(&self) -> String {
        let (least, greatest) = self.range;
        let last = self.lines.iter().flat_map(|(_, points)| points).fold(1.0f64, |last, (x, _)| last.max(*x));
        let x = |at: f64| EDGE + (SIZE.0 - 2.0 * EDGE) * at / last;
        let share = |value: f64| ((value - least) / (greatest - least).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let y = |value: f64| SIZE.1 - EDGE - (SIZE.1 - 2.0 * EDGE) * share(value);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            SIZE.0, SIZE.1, self.title
        );
        for quarter in 0..=4 {
            let value = least + (greatest - least) * f64::from(quarter) / 4.0;
            svg += &format!(
                "<line x1=\"{EDGE}\" x2=\"{:.1}\" y1=\"{2:.1}\" y2=\"{2:.1}\" stroke=\"#ddd\"/><text x=\"8\" y=\"{3:.1}\">{1}</text>\n",
                SIZE.0 - EDGE,
                (self.label)(value),
                y(value),
                y(value) + 4.0
            );
        }
        for (at, ((name, points), color)) in self.lines.iter().zip(COLORS).enumerate() {
            let points: Vec<String> = points.iter().map(|(place, value)| format!("{:.1},{:.1}", x(*place), y(*value))).collect();
            svg += &format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n<text x=\"{:.0}\" y=\"24\" fill=\"{color}\">{name}</text>\n",
                points.join(" "),
                EDGE + 180.0 * at as f64
            );
        }
        let end = format!("{}: {last:.0}", self.over);
        svg + &format!("<text x=\"{:.0}\" y=\"{:.0}\">{end}</text>\n</svg>\n", SIZE.0 / 2.0 - 24.0, SIZE.1 - 12.0)
    }
}

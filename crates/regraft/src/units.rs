//! Words on the command line: shapes, sizes, times.

use std::time::Duration;

/// One size of a `--shape`: a number or a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number.
    Known(usize),
    /// A name, bound elsewhere (`--bind`).
    Symbol(String),
}

/// `name:1,3,224,224`, `name:1x3x224x224`, `name:[1,3,224,224]`, `name:N,3,H,W`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeArg {
    /// Input name.
    pub input: String,
    /// Sizes.
    pub sizes: Vec<Size>,
}

/// One `--freeze`: the sizes of an input, `x:1,3,224,224`, or that of a symbol, `N=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeArg {
    /// Sizes of an input; names stay open.
    Input(ShapeArg),
    /// The size that a symbol stands for.
    Symbol(String, i64),
}

/// Parses a `--freeze`.
pub fn parse_freeze(text: &str) -> Result<FreezeArg, String> {
    match parse_bind(text) {
        Ok((symbol, size)) => Ok(FreezeArg::Symbol(symbol, size)),
        Err(why) if text.contains('=') && !text.contains(':') => Err(why),
        Err(_) => parse_shape(text).map(FreezeArg::Input),
    }
}

/// Parses a `--shape`.
pub fn parse_shape(text: &str) -> Result<ShapeArg, String> {
    let usage = "write it as input:1,3,224,224";
    let (input, sizes) = text.rsplit_once(':').ok_or_else(|| format!("`{text}` has no `:` ({usage})"))?;
    if input.is_empty() {
        return Err(format!("`{text}` names no input ({usage})"));
    }
    let inner = sizes.trim().trim_start_matches('[').trim_end_matches(']');
    // `x` separates numbers only: a symbol may contain the letter.
    let by_x = !inner.contains(',') && inner.split('x').all(|s| s.parse::<usize>().is_ok());
    let parts: Vec<&str> = if inner.is_empty() { Vec::new() } else { inner.split(if by_x { 'x' } else { ',' }).map(str::trim).collect() };
    let size = |word: &&str| match word.parse::<usize>() {
        Ok(0) => Err(format!("size 0 in `{text}` must be at least 1")),
        Ok(n) => Ok(Size::Known(n)),
        Err(_) if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => Ok(Size::Symbol((*word).to_string())),
        Err(_) => Err(format!("`{word}` in `{text}` is neither a size nor a symbol ({usage})")),
    };
    Ok(ShapeArg { input: input.to_string(), sizes: parts.iter().map(size).collect::<Result<_, _>>()? })
}

/// Parses a `--bind`: `N=4`.
pub fn parse_bind(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not `SYMBOL=SIZE`"))?;
    let value: i64 = value.parse().map_err(|_| format!("`{value}` in `{text}` is not a size"))?;
    if value < 1 { Err(format!("size {value} of `{name}` must be at least 1")) } else { Ok((name.to_string(), value)) }
}

/// Parses a `--bind` of one or several values: `N=1,8`.
pub fn parse_binds(text: &str) -> Result<(String, Vec<i64>), String> {
    let (name, values) = text.split_once('=').ok_or_else(|| format!("`{text}` is not `SYMBOL=SIZE`"))?;
    let one = |value: &str| parse_bind(&format!("{name}={}", value.trim())).map(|(_, size)| size);
    Ok((name.to_string(), values.split(',').map(one).collect::<Result<_, _>>()?))
}

/// Parses a number of bytes: `4096`, `16M`, `2GB`, `1.5GiB`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..split].trim().parse().map_err(|_| format!("`{text}` is not a size; write 16M or 2GB"))?;
    let unit = match text[split..].to_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 1u64,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        other => return Err(format!("`{other}` in `{text}` is not a unit; use K, M, G or T")),
    };
    if number < 0.0 || !number.is_finite() { Err(format!("`{text}` is not a size")) } else { Ok((number * unit as f64) as u64) }
}

/// Parses a time: `60s`, `5m`, `1h`, `500ms`, `90`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..split].trim().parse().map_err(|_| format!("`{text}` is not a time; write 60s or 5m"))?;
    let seconds = match &text[split..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("`{other}` in `{text}` is not a unit; use ms, s, m or h")),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err(format!("`{text}` is no time to do anything in; write 60s or 5m")),
        Err(_) => Err(format!("`{text}` is not a time")),
    }
}

/// Bytes, human-readable.
pub fn show_bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Nanoseconds, human-readable.
pub fn show_ns(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_in_all_spellings() {
        let want = vec![Size::Known(1), Size::Known(3), Size::Known(8)];
        for text in ["x:1,3,8", "x:1x3x8", "x:[1,3,8]", "x:[1, 3, 8]"] {
            assert_eq!(parse_shape(text), Ok(ShapeArg { input: "x".into(), sizes: want.clone() }), "{text}");
        }
        assert_eq!(parse_shape("a:b:N,3").map(|s| (s.input, s.sizes)), Ok(("a:b".into(), vec![Size::Symbol("N".into()), Size::Known(3)])));
        assert_eq!(parse_shape("x:").map(|s| s.sizes), Ok(vec![]));
        for bad in ["x", ":1", "x:1,-3", "x:1,,3", "x:0,3"] {
            assert!(parse_shape(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_frozen() {
        assert_eq!(parse_freeze("N=8"), Ok(FreezeArg::Symbol("N".into(), 8)));
        let input = |input: &str, sizes| Ok(FreezeArg::Input(ShapeArg { input: input.into(), sizes }));
        assert_eq!(parse_freeze("x:1,H"), input("x", vec![Size::Known(1), Size::Symbol("H".into())]));
        assert_eq!(parse_freeze("a=b:0:4"), input("a=b:0", vec![Size::Known(4)]));
        for bad in ["N=0", "N=1,8", "x", "x:0"] {
            assert!(parse_freeze(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bindings() {
        assert_eq!(parse_binds("N=8"), Ok(("N".into(), vec![8])));
        assert_eq!(parse_binds("N=1, 8,32"), Ok(("N".into(), vec![1, 8, 32])));
        for bad in ["N", "N=", "N=0", "N=1,,8", "N=1,x"] {
            assert!(parse_binds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(parse_bytes("16M"), Ok(16 << 20));
        assert_eq!(parse_bytes("2GB"), Ok(2 << 30));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("7"), Ok(7));
        assert!(parse_bytes("-1M").is_err() && parse_bytes("1Q").is_err());
        assert_eq!(parse_duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(parse_duration("-1s").is_err() && parse_duration("1y").is_err());
    }
}

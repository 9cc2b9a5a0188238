//! The pocket calculator of the shop.

use super::shop::Refusal;

/// The value of an expression of numbers, `+ - * /` and parentheses, to two places.
pub(crate) fn evaluate(expression: &str) -> Result<String, Refusal> {
    let tokens: Vec<char> = expression.chars().filter(|c| !c.is_whitespace()).collect();
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
    };
    let value = parser.sum()?;
    if parser.at != tokens.len() || !value.is_finite() {
        return Err(Refusal(format!("`{expression}` has no value")));
    }
    Ok(format!("{value:.2}"))
}

struct Parser<'a> {
    tokens: &'a [char],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let found = self.peek().filter(|token| wanted.contains(token))?;
        self.at += 1;
        Some(found)
    }

    fn sum(&mut self) -> Result<f64, Refusal> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.product()?;
            value = if sign == '+' {
                value + next
            } else {
                value - next
            };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, Refusal> {
        let mut value = self.factor()?;
        while let Some(sign) = self.take(&['*', '/']) {
            let next = self.factor()?;
            value = if sign == '*' {
                value * next
            } else {
                value / next
            };
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<f64, Refusal> {
        if self.take(&['-']).is_some() {
            return Ok(-self.factor()?);
        }
        if self.take(&['(']).is_some() {
            let value = self.sum()?;
            return match self.take(&[')']) {
                Some(_) => Ok(value),
                None => Err(Refusal("a parenthesis is missing".into())),
            };
        }
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        let number: String = rest
            .iter()
            .take_while(|c| c.is_ascii_digit() || **c == '.')
            .collect();
        self.at += number.len();
        number
            .parse()
            .map_err(|_| Refusal(format!("`{number}` is no number")))
    }
}

#[test]
fn the_calculator_calculates() {
    assert_eq!(evaluate("2 + 3 * (4 - 1) / 2").unwrap(), "6.50");
    assert_eq!(evaluate("-(1 - 0.5)").unwrap(), "-0.50");
    for bad in ["", "1 +", "(1", "1 / 0", "x"] {
        assert!(evaluate(bad).is_err(), "{bad}");
    }
}

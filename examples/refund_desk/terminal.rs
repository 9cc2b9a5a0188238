//! Reading decisions: from a person at a terminal, or line by line from a pipe.

use std::io::{IsTerminal as _, Write as _};

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};

/// What a person says about a call.
pub enum Said {
    /// Approve.
    Approve,
    /// Decline, with a reason or without.
    Decline(Option<String>),
    /// Amend the amount.
    Amend(String),
    /// Anything else, for prompts that take text.
    Text(String),
    /// Leave it.
    Quit,
}

/// The person.
pub struct Terminal {
    lines: Lines<BufReader<Stdin>>,
    interactive: bool,
}

impl Terminal {
    /// Standard input.
    pub fn new() -> Self {
        let interactive = std::io::stdin().is_terminal();
        Self {
            lines: BufReader::new(tokio::io::stdin()).lines(),
            interactive,
        }
    }

    /// Asks once. The end of the input leaves everything pending.
    pub async fn ask(&mut self, prompt: &str) -> std::io::Result<Said> {
        print!("{prompt} ");
        std::io::stdout().flush()?;
        let line = self.lines.next_line().await?;
        if !self.interactive {
            println!("{}", line.as_deref().unwrap_or("(end of input)"));
        }
        Ok(line.map_or(Said::Quit, |line| said(line.trim())))
    }
}

fn said(line: &str) -> Said {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match word {
        "q" => Said::Quit,
        "a" if rest.is_empty() => Said::Approve,
        "d" => Said::Decline(Some(rest.to_owned()).filter(|reason| !reason.is_empty())),
        "m" if !rest.is_empty() => Said::Amend(rest.to_owned()),
        _ => Said::Text(line.to_owned()),
    }
}

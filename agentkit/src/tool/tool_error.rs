use std::{error::Error, fmt};

/// Why a tool could not do what it was called for.
///
/// [`message`](Self::message) is what the model is told; the [`source`](Error::source) is for the
/// application's log and never shown to a model.
#[derive(Debug)]
pub struct ToolError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// A failure described by a text for the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// A failure described by a text for the model, with the error behind it for the log.
    pub fn with_source(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// The failure that `error` describes: its own text for the model, not those of its sources.
    pub fn from_error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        // A `ToolError` that went through a box stays what it was.
        match error.into().downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self {
                message: error.to_string(),
                source: Some(error),
            },
        }
    }

    /// What the model is told.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

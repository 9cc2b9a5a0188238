use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Which model of which provider: `openai/gpt-5-mini`.
///
/// The provider is what stands before the first slash, so that models with a slash in their own
/// name (`open_router/openai/gpt-5-mini`) can be named.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName {
    provider: Box<str>,
    model: Box<str>,
}

/// Why a text does not name a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` does not name a model: write `provider/model`, as in `openai/gpt-5-mini`")]
pub struct ModelNameError {
    text: String,
}

impl ModelName {
    /// The name of a [`scripted`](super::scripted) model unless it is given another.
    pub(crate) fn scripted() -> Self {
        Self {
            provider: "scripted".into(),
            model: "scripted".into(),
        }
    }

    /// The provider, as in `openai`.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model as the provider calls it, as in `gpt-5-mini`.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl FromStr for ModelName {
    type Err = ModelNameError;

    fn from_str(text: &str) -> Result<Self, ModelNameError> {
        let written = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic());
        match text.split_once('/') {
            Some((provider, model)) if written(provider) && written(model) => Ok(Self {
                provider: provider.into(),
                model: model.into(),
            }),
            _ => Err(ModelNameError {
                text: text.chars().take(128).collect(),
            }),
        }
    }
}

impl TryFrom<String> for ModelName {
    type Error = ModelNameError;

    fn try_from(text: String) -> Result<Self, ModelNameError> {
        text.parse()
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use super::*;

    #[test]
    fn the_provider_ends_at_the_first_slash() {
        let name: ModelName = "open_router/openai/gpt-5-mini".parse().unwrap();
        assert_eq!(name.provider(), "open_router");
        assert_eq!(name.model(), "openai/gpt-5-mini");
        assert_eq!(name.to_string(), "open_router/openai/gpt-5-mini");
    }

    #[test]
    fn a_name_without_both_parts_is_refused() {
        for text in [
            "",
            "gpt-5-mini",
            "/gpt-5-mini",
            "openai/",
            "open ai/gpt",
            "a/b\n",
        ] {
            let error = text.parse::<ModelName>().unwrap_err();
            assert!(error.to_string().contains("provider/model"), "{text}");
        }
    }
}

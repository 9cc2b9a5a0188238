use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{ChatModel, ModelError, ModelName, ModelRequest, ModelStream};

/// How often and how long [`Retrying`] waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a request is sent at most, the first time included.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with every further one.
    pub first_wait: Duration,
    /// The longest wait that we choose ourselves.
    pub longest_wait: Duration,
    /// The longest wait that a provider may ask for. When it asks for more, the error is
    /// returned at once, with what it asked for.
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    /// Four attempts, waits of about 0.5, 1 and 2 seconds, `retry-after` of up to a minute.
    fn default() -> Self {
        Self {
            attempts: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            longest_retry_after: Duration::from_mins(1),
        }
    }
}

/// Sends a request again when it failed before its first event.
///
/// After the first event nothing is repeated: a stream that breaks in the middle is an error of
/// the run, which stays resumable. Only errors that are
/// [retryable](ModelError::is_retryable) are repeated.
#[derive(Clone, Debug)]
pub struct Retrying<M> {
    model: M,
    policy: RetryPolicy,
}

impl<M> Retrying<M> {
    /// Wraps a model with the default policy.
    pub fn new(model: M) -> Self {
        Self::with_policy(model, RetryPolicy::default())
    }

    /// Wraps a model with a policy of its own.
    pub fn with_policy(model: M, policy: RetryPolicy) -> Self {
        Self { model, policy }
    }
}

impl RetryPolicy {
    /// How long to wait after the given attempt (from 1) failed; `None` gives up.
    fn wait_after(&self, attempt: u32, error: &ModelError) -> Option<Duration> {
        if attempt >= self.attempts || !error.is_retryable() {
            return None;
        }
        let doublings = attempt.saturating_sub(1).min(20);
        let own = self
            .first_wait
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(self.longest_wait);
        match error.retry_after() {
            Some(asked) if asked > self.longest_retry_after => None,
            // Never earlier than asked; the jitter comes on top.
            Some(asked) => Some(asked.saturating_add(jitter(own / 4))),
            None => Some((own / 2).saturating_add(jitter(own / 2))),
        }
    }
}

/// A random part of `span`, so that clients that failed together do not return together.
fn jitter(span: Duration) -> Duration {
    // Without randomness the longest wait is the safe one.
    let share = getrandom::u32().unwrap_or(u32::MAX);
    span.mul_f64(f64::from(share) / f64::from(u32::MAX))
}

#[async_trait::async_trait]
impl<M: ChatModel> ChatModel for Retrying<M> {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let mut attempt = 1;
        loop {
            let error = match self.model.stream(request).await {
                Ok(mut events) => match events.next().await {
                    Some(Ok(first)) => {
                        return Ok(stream::iter([Ok(first)]).chain(events).boxed());
                    }
                    Some(Err(error)) => error,
                    None => ModelError::truncated(
                        "the model closed its stream without sending anything",
                    ),
                },
                Err(error) => error,
            };
            let Some(wait) = self.policy.wait_after(attempt, &error) else {
                return Err(error);
            };
            tracing::warn!(
                model = %self.name(),
                attempt,
                wait_ms = wait.as_millis(),
                %error,
                "model request failed before its first event, trying again",
            );
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;

//! What a person sees of a call. Everything that a model or a tool wrote is shown as such, with
//! control characters made visible, so that it cannot pass for the desk's own voice.

use std::fmt::Write as _;

use agentkit::approval::PendingCall;

/// Text of a stranger: control, format and bidirectional characters become visible.
pub fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let hidden = character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if hidden {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The card of one call.
pub fn card(call: &PendingCall, title: &str) -> String {
    let mut lines = vec![
        ("tool", call.tool.clone()),
        ("arguments", inert(call.arguments.as_str())),
    ];
    for reason in &call.reasons {
        lines.push(("why", inert(&reason.to_string())));
    }
    lines.push(("requester", inert(&call.requester.id)));
    let given: Vec<_> = call
        .approvals
        .iter()
        .map(|vote| inert(&vote.approver.id))
        .collect();
    if call.quorum > 1 || !given.is_empty() {
        lines.push((
            "approvals",
            format!("{} of {} {}", given.len(), call.quorum, given.join(", ")),
        ));
    }
    lines.push((
        "fingerprint",
        format!("{}  ({})", call.fingerprint.short(), call.fingerprint),
    ));
    lines.push(("expires", call.expires_at.to_string()));
    lines.push(("id", format!("{}/{}", call.run, call.call)));
    let mut card = format!("┌─ {title}\n");
    for (name, text) in lines {
        // Writing to a `String` cannot fail.
        let _ = writeln!(card, "│ {name:<12}{text}");
    }
    card.push_str("└─");
    card
}

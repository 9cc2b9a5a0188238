//! Checks the parameters of a function: what each is called, where its value comes from, and what
//! type can hold it.

use std::collections::BTreeSet;

use quote::ToTokens as _;
use syn::{
    Attribute, FnArg, Ident, Lifetime, LitStr, Pat, PatType, Receiver, ReceiverKind, Type,
    ext::IdentExt as _, spanned::Spanned as _,
};

use super::{
    model::{Argument, ArgumentDefault, Parameter, Source},
    parse::Item,
    types,
};
use crate::{docs::Docs, name, options, problems::Problems};

/// The parameters, each with its rename's literal for later checks.
pub(super) fn parameters(
    item: &Item,
    owner: Option<&Type>,
    problems: &mut Problems,
) -> Vec<(Parameter, Option<LitStr>)> {
    let mut parameters = Vec::new();
    for input in &item.signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                if let Some(parameter) = state(receiver, owner, problems) {
                    parameters.push((parameter, None));
                }
            }
            FnArg::Typed(typed) => {
                if let Some(parameter) = parameter(typed, problems) {
                    parameters.push(parameter);
                }
            }
        }
    }
    parameters
}

/// `&self`: the value whose methods are tools is a context.
fn state(receiver: &Receiver, owner: Option<&Type>, problems: &mut Problems) -> Option<Parameter> {
    let Some(owner) = owner else {
        problems.add(
            receiver,
            "a method is a tool only if its `impl` block is known",
            "put `#[tools]` on the `impl` block, or write a free function and pass the state by \
             `#[ctx] state: &State`",
        );
        return None;
    };
    let shared = receiver.mutability.is_none()
        && matches!(receiver.kind, ReceiverKind::Reference(_, _, None));
    if !shared {
        problems.add(
            receiver,
            "a tool shares its state with every other call, so it can only borrow it",
            "take `&self`, and put what changes behind a lock",
        );
        return None;
    }
    Some(Parameter {
        conditions: Vec::new(),
        source: Source::Context {
            ty: types::owned(owner),
            borrowed: true,
        },
    })
}

/// The attributes of one parameter, sorted.
#[derive(Default)]
struct Attributes<'a> {
    docs: Docs,
    conditions: Vec<Attribute>,
    forwarded: Vec<Attribute>,
    context: Option<&'a Attribute>,
    resume: Option<&'a Attribute>,
    options: Vec<options::Entry>,
    has_options: Option<&'a Attribute>,
}

const ARGUMENT_KEYS: [&str; 2] = ["default", "rename"];

fn attributes<'a>(typed: &'a PatType, problems: &mut Problems) -> Attributes<'a> {
    let mut sorted = Attributes::default();
    for attribute in &typed.attrs {
        let path = attribute.path();
        if sorted.docs.take(attribute) {
        } else if path.is_ident("cfg") {
            sorted.conditions.push(attribute.clone());
        } else if ["serde", "schemars", "cfg_attr"]
            .iter()
            .any(|name| path.is_ident(name))
        {
            sorted.forwarded.push(attribute.clone());
        } else if path.is_ident("ctx") {
            sorted.context = Some(attribute);
        } else if path.is_ident("resume") {
            sorted.resume = Some(attribute);
        } else if path.is_ident("arg") {
            sorted.has_options = Some(attribute);
            match &attribute.meta {
                syn::Meta::List(list) => sorted.options.extend(options::entries(
                    list.tokens.clone(),
                    "#[arg]",
                    &ARGUMENT_KEYS,
                    problems,
                )),
                _ => problems.add(
                    attribute,
                    "`#[arg]` says nothing",
                    "write `#[arg(default)]`, `#[arg(default = …)]` or `#[arg(rename = \"…\")]`",
                ),
            }
        }
    }
    sorted
}

/// Whether a parameter's attribute is ours, and not to be seen by the compiler.
pub(super) fn is_ours(attribute: &Attribute) -> bool {
    ["doc", "serde", "schemars", "ctx", "resume", "arg"]
        .iter()
        .any(|name| attribute.path().is_ident(name))
}

fn parameter(typed: &PatType, problems: &mut Problems) -> Option<(Parameter, Option<LitStr>)> {
    let attributes = attributes(typed, problems);
    if let (Some(_), Some(resume)) = (attributes.context, attributes.resume) {
        problems.add(
            resume,
            "a parameter is either a context or the answer to a question",
            "remove one of `#[ctx]` and `#[resume]`",
        );
    }
    let special = attributes.context.or(attributes.resume);
    if let Some(special) = special {
        no_argument_attributes(&attributes, special, problems);
    }
    let conditions = attributes.conditions.clone();
    if attributes.context.is_some() {
        let source = context(&typed.ty, problems);
        return Some((Parameter { conditions, source }, None));
    }
    if attributes.resume.is_some() {
        let span = typed.ty.span();
        let source = Source::Resume { span };
        return Some((Parameter { conditions, source }, None));
    }
    let field = field(typed, problems);
    let ty = argument_type(&typed.ty, problems);
    let (rename, default) = argument_options(&attributes.options, problems);
    let (field, ty) = (field?, ty?);
    let argument = Argument {
        field,
        borrowed: types::reference(&typed.ty).is_some(),
        ty,
        forwarded: attributes.forwarded,
        docs: attributes.docs,
        rename: rename.as_ref().map(LitStr::value),
        default,
    };
    let source = Source::Argument(argument);
    Some((Parameter { conditions, source }, rename))
}

fn no_argument_attributes(
    attributes: &Attributes<'_>,
    special: &Attribute,
    problems: &mut Problems,
) {
    let what = special.path().to_token_stream();
    let extra = attributes.has_options.or_else(|| {
        attributes
            .forwarded
            .iter()
            .find(|attribute| !attribute.path().is_ident("cfg_attr"))
    });
    if let Some(extra) = extra {
        problems.add(
            extra,
            &format!("a parameter with `#[{what}]` does not come from the model"),
            &format!("remove this attribute, or remove `#[{what}]`"),
        );
    }
}

/// The name of an argument.
fn field(typed: &PatType, problems: &mut Problems) -> Option<Ident> {
    let mut pattern = &*typed.pat;
    while let Pat::Paren(paren) = pattern {
        pattern = &paren.pat;
    }
    if let Pat::Ident(named) = pattern
        && named.by_ref.is_none()
        && named.subpat.is_none()
    {
        return Some(named.ident.clone());
    }
    let ty = types::text(&typed.ty);
    let name = match pattern {
        Pat::Ident(named) => named.ident.to_string(),
        Pat::Tuple(_) | Pat::Slice(_) => "items".to_owned(),
        Pat::Struct(pattern) => last_segment(&pattern.path),
        Pat::TupleStruct(pattern) => last_segment(&pattern.path),
        _ => "value".to_owned(),
    };
    problems.add(
        pattern,
        "an argument needs a name, since the model calls it by name",
        &format!("write `{name}: {ty}` and take it apart in the body"),
    );
    None
}

fn last_segment(path: &syn::Path) -> String {
    path.segments.last().map_or_else(
        || "value".to_owned(),
        |last| name::snake(&last.ident.unraw().to_string()),
    )
}

/// The type of the field that holds an argument; for a borrowed one, what it borrows.
fn argument_type(ty: &Type, problems: &mut Problems) -> Option<Type> {
    if let Some(found) = types::impl_trait(ty) {
        problems.add(
            found,
            "an argument that comes from the model needs a concrete type",
            "name the type, such as `String`",
        );
        return None;
    }
    let Some(reference) = types::reference(ty) else {
        return nested(ty, ty, problems).then(|| types::owned(ty));
    };
    let owned = types::suggestion(reference);
    if let Some(lifetime) = static_lifetime(reference.lifetime.as_ref()) {
        problems.add(
            lifetime,
            "an argument cannot be `'static`: it lives as long as the call",
            &format!("take `{owned}`, or borrow it without the lifetime"),
        );
        return None;
    }
    if let Some(mutability) = &reference.mutability {
        problems.add(
            mutability,
            "an argument cannot be borrowed mutably: nobody would see the change",
            &format!("take `{owned}`"),
        );
        return None;
    }
    nested(&reference.elem, ty, problems).then(|| types::owned(&reference.elem))
}

fn static_lifetime(lifetime: Option<&Lifetime>) -> Option<&Lifetime> {
    lifetime.filter(|lifetime| lifetime.ident == "static")
}

/// A reference inside of a type has nothing to borrow from.
fn nested(inner: &Type, whole: &Type, problems: &mut Problems) -> bool {
    let Some(found) = types::nested_reference(inner) else {
        return true;
    };
    let owned = types::text(whole)
        .trim_start_matches('&')
        .replace("&str", "String")
        .replace("&'static str", "String")
        .replace('&', "");
    problems.add(
        found,
        "an argument cannot hold a reference inside of another type: there is nothing to borrow \
         from",
        &format!("take the owned form, such as `{owned}`"),
    );
    false
}

fn argument_options(
    entries: &[options::Entry],
    problems: &mut Problems,
) -> (Option<LitStr>, ArgumentDefault) {
    let mut rename = None;
    let mut default = ArgumentDefault::None;
    for entry in entries {
        if entry.key == "rename" {
            rename = entry.value::<LitStr>("\"name\"", problems);
        } else if let options::EntryValue::None = entry.value {
            default = ArgumentDefault::Trait;
        } else if let Some(value) = entry.value::<syn::Expr>("value", problems) {
            default = ArgumentDefault::Expression(value.to_token_stream());
        }
    }
    (rename, default)
}

fn context(ty: &Type, problems: &mut Problems) -> Source {
    if let Some(found) = types::impl_trait(ty) {
        problems.add(
            found,
            "a context is found by its type and needs a concrete one",
            "name the type that is given to the agent's builder",
        );
    }
    let Some(reference) = types::reference(ty) else {
        return Source::Context {
            ty: types::owned(ty),
            borrowed: false,
        };
    };
    if let Some(mutability) = &reference.mutability {
        problems.add(
            mutability,
            "a context is shared and cannot be borrowed mutably",
            "borrow it with `&`, and put what changes behind a lock",
        );
    }
    if let Some(lifetime) = static_lifetime(reference.lifetime.as_ref()) {
        problems.add(
            lifetime,
            "a context cannot be `'static`: it is borrowed for the call",
            "remove the lifetime, or take an `Arc`",
        );
    }
    Source::Context {
        ty: types::owned(&reference.elem),
        borrowed: true,
    }
}

/// Two arguments of one name, after renaming.
pub(super) fn property_names(parameters: &[(Parameter, Option<LitStr>)], problems: &mut Problems) {
    let mut taken = BTreeSet::new();
    let arguments = parameters
        .iter()
        .filter_map(|(parameter, rename)| match &parameter.source {
            // Two of one name under exclusive conditions are no clash.
            Source::Argument(argument) if parameter.conditions.is_empty() => {
                Some((argument, rename))
            }
            _ => None,
        });
    for (argument, rename) in arguments.clone() {
        if rename.is_none() {
            taken.insert(argument.field.unraw().to_string());
        }
    }
    for (_, rename) in arguments {
        if let Some(literal) = rename
            && !taken.insert(literal.value())
        {
            problems.add(
                literal,
                &format!("another argument is called `{}` already", literal.value()),
                "choose another name",
            );
        }
    }
}

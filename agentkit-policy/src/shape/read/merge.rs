//! Schemas that must hold all at once, made into one.

use serde_json::{Value, json};

use super::{Object, ReadError, Reader, STRUCTURE};

impl Reader<'_> {
    /// One schema for what must hold all at once; none where it refers to itself.
    pub(super) fn merge(
        &mut self,
        base: &Object,
        parts: &[Value],
    ) -> Result<Option<Object>, ReadError> {
        let mut merged = base.clone();
        merged.remove("allOf");
        for part in parts {
            let part = match part {
                Value::Bool(_) => continue,
                Value::Object(part) => match self.resolve(part.clone())? {
                    Some(part) => part,
                    None => return Ok(None),
                },
                other => {
                    return Err(self.fail(
                        format!("`{other}` is not a JSON Schema"),
                        "use an object, `true` or `false`",
                    ));
                }
            };
            self.refuse_beyond(&part)?;
            let part = match part.get("allOf") {
                Some(inner) => {
                    let inner = self.list_of(inner, "allOf")?;
                    match self.merge(&part, &inner)? {
                        Some(part) => part,
                        None => return Ok(None),
                    }
                }
                None => part,
            };
            self.merge_one(&mut merged, part)?;
        }
        Ok(Some(merged))
    }

    /// Follows `$ref`s that stand alone; none on a cycle.
    pub(super) fn resolve(&mut self, mut schema: Object) -> Result<Option<Object>, ReadError> {
        while let Some(reference) = schema.remove("$ref") {
            let (name, target) = self.lookup(&reference)?;
            if self.references.contains(&name) {
                return Ok(None);
            }
            self.references.push(name);
            let Value::Object(target) = target else {
                return Ok(Some(schema));
            };
            if STRUCTURE
                .iter()
                .any(|keyword| schema.contains_key(*keyword))
            {
                let parts = [Value::Object(target)];
                return self.merge(&schema, &parts);
            }
            schema = target;
        }
        Ok(Some(schema))
    }

    fn merge_one(&self, into: &mut Object, part: Object) -> Result<(), ReadError> {
        for (keyword, value) in part {
            let Some(present) = into.get_mut(&keyword) else {
                into.insert(keyword, value);
                continue;
            };
            if *present == value {
                continue;
            }
            match (keyword.as_str(), present, value) {
                (
                    "properties" | "$defs" | "definitions",
                    Value::Object(ours),
                    Value::Object(theirs),
                ) => {
                    for (key, schema) in theirs {
                        let both = match ours.remove(&key) {
                            Some(first) if first != schema => json!({"allOf": [first, schema]}),
                            _ => schema,
                        };
                        ours.insert(key, both);
                    }
                }
                ("required", Value::Array(ours), Value::Array(theirs)) => ours.extend(theirs),
                ("enum", Value::Array(ours), Value::Array(theirs)) => {
                    ours.retain(|value| theirs.contains(value));
                }
                // Open beats closed: a key that either part declares must be seen.
                ("additionalProperties", ours @ Value::Bool(false), theirs) => *ours = theirs,
                ("oneOf" | "anyOf" | "patternProperties" | "items" | "prefixItems", ..) => {
                    return Err(self.fail(
                        format!("`allOf` combines two different `{keyword}`"),
                        "write the combination out in one schema",
                    ));
                }
                ("type", ours, theirs) => {
                    if let Some(narrower) = common_type(ours, &theirs) {
                        *ours = narrower;
                    } else {
                        return Err(self.fail(
                            format!("`allOf` combines the types {ours} and {theirs}"),
                            "no value has both, name one type",
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn common_type(ours: &Value, theirs: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let integer = Value::from("integer");
    let number = Value::from("number");
    let (ours, theirs) = (list(ours), list(theirs));
    let both: Vec<Value> = ours
        .iter()
        .chain(&theirs)
        .filter(|kind| {
            let fits =
                |side: &[Value]| side.contains(kind) || **kind == integer && side.contains(&number);
            fits(&ours) && fits(&theirs)
        })
        .fold(Vec::new(), |mut found, kind| {
            if !found.contains(kind) {
                found.push(kind.clone());
            }
            found
        });
    match both.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(Value::Array(both)),
    }
}

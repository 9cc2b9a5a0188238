use std::sync::{Arc, Mutex};

use agentkit::{
    approval::{Directory, DirectoryError, Standing},
    policy::PolicySource,
    prelude::*,
    run::DecideError,
};

use crate::desk::*;

/// The second person may approve only after someone of finance.
const POLICY: &str = r#"
    @id("pays") permit (principal, action == Action::"pay with approval", resource)
        when { context.approvals.count >= 2 };
    @id("first") permit (principal in Role::"finance", action == Action::"approve pay", resource)
        when { context.approvals.count == 0 };
    @id("second") permit (principal, action == Action::"approve pay", resource)
        when { context.approvals.approvers.contains(User::"fiona") };
"#;

#[derive(Clone)]
struct Staff(Arc<Mutex<Option<&'static str>>>);

#[async_trait::async_trait]
impl Directory for Staff {
    async fn standing(&self, person: &Principal) -> Result<Standing, DirectoryError> {
        let role = match person.id.as_str() {
            "fiona" => *self.0.lock().unwrap(),
            _ => Some("clerk"),
        };
        Ok(role.map_or(Standing::Unknown, |role| Standing::Known {
            roles: [role.to_owned()].into(),
        }))
    }
}

#[tokio::test]
async fn when_the_next_person_decides() {
    for known in [true, false] {
        let world = World::new();
        let staff = Staff(Arc::new(Mutex::new(Some("finance"))));
        let builder = world.builder::<Desk>(pays("bob", 5)).await;
        let desk = builder
            .policies(vec![PolicySource::new("test.cedar", POLICY)])
            .directory(staff.clone())
            .build()
            .unwrap();
        let (_, call) = stopped(&desk).await;
        desk.decide(&fiona(), approve(&call)).await.unwrap();
        if !known {
            // She is gone; what her credentials claimed when she decided does not count.
            *staff.0.lock().unwrap() = None;
        }
        match desk.decide(&frank(), approve(&call)).await {
            Ok(decided) => assert!(known, "{decided:?}"),
            Err(DecideError::NotAllowed { .. }) => assert!(!known),
            Err(error) => panic!("{error:?}"),
        }
    }
}

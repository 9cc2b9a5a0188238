use reqwest::Method;

use crate::client::House;

#[tokio::test(flavor = "multi_thread")]
async fn about_every_path_and_every_reference() {
    let house = House::open().await;
    let (status, document) = house.stranger().get("/v1/openapi.json").await;
    assert_eq!(status, 200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 15, "{}", paths.len());
    let clara = house.person("clara");
    for (path, item) in paths {
        // The wrong method tells a path that exists from one that does not.
        let filled = path.replace(['{', '}'], "");
        let answer = clara.request(Method::TRACE, &filled).send().await.unwrap();
        assert_eq!(answer.status(), 405, "{path}");
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["operationId"].is_string(), "{method} {path}");
        }
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

//! A kube-rs operator and its user in one program, as a client of the server that KUBECONFIG names.
//!
//! Each step prints `ok <step>` when what it expected has come true; the first failure ends the program.

use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        finalizer::{self, Event},
        wait::{await_condition, conditions},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const FINALIZER: &str = "rust.konverge.dev/farewell";
const NAMESPACE: &str = "rust-client";

#[derive(CustomResource, Deserialize, Serialize, Clone, Debug, JsonSchema)]
#[kube(group = "rust.konverge.dev", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
struct GreetingSpec {
    text: String,
}

#[derive(Deserialize, Serialize, Clone, Debug, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GreetingStatus {
    #[serde(default)]
    said: String,
    #[serde(default)]
    observed_generation: i64,
}

// ------------------------------------------------------------------ the operator

type Failure = finalizer::Error<kube::Error>;

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, Failure> {
    let api: Api<Greeting> = Api::namespaced((*client).clone(), NAMESPACE);
    finalizer::finalizer(&api, FINALIZER, greeting, |event| async {
        match event {
            Event::Apply(greeting) => say(&greeting, &client).await,
            Event::Cleanup(greeting) => leave_a_note(&greeting, &client).await,
        }
    })
    .await
}

async fn say(greeting: &Greeting, client: &Client) -> Result<Action, kube::Error> {
    let name = greeting.name_any();
    let mut said = config_map(&name, &greeting.spec.text);
    said.metadata.owner_references = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
    let owner = PatchParams::apply("greeter").force();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    maps.patch(&name, &owner, &Patch::Apply(&said)).await?;
    let status = GreetingStatus {
        said: greeting.spec.text.clone(),
        observed_generation: greeting.metadata.generation.unwrap_or_default(),
    };
    let api: Api<Greeting> = Api::namespaced(client.clone(), NAMESPACE);
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await?;
    Ok(Action::await_change())
}

async fn leave_a_note(greeting: &Greeting, client: &Client) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let note = config_map(&format!("{}-farewell", greeting.name_any()), "farewell");
    maps.patch(&note.name_any(), &PatchParams::apply("greeter"), &Patch::Apply(&note)).await?;
    Ok(Action::await_change())
}

fn config_map(name: &str, text: &str) -> ConfigMap {
    let mut made = ConfigMap::default();
    made.metadata.name = Some(name.into());
    made.data = Some(BTreeMap::from([("text".to_owned(), text.to_owned())]));
    made
}

async fn operate(client: Client) {
    let greetings: Api<Greeting> = Api::namespaced(client.clone(), NAMESPACE);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    Controller::new(greetings, watcher::Config::default().streaming_lists())
        .owns(maps, watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(200)), Arc::new(client))
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("reconcile: {error}");
            }
        })
        .await;
}

// ------------------------------------------------------------------ its user

async fn install(client: &Client) -> Outcome {
    let owner = PatchParams::apply("installer").force();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = Greeting::crd();
    crds.patch(&definition.name_any(), &owner, &Patch::Apply(&definition)).await?;
    await_condition(crds, &definition.name_any(), conditions::is_crd_established()).await?;
    // What answers requests learns of a definition by a watch of its own.
    let greetings: Api<Greeting> = Api::all(client.clone());
    while let Err(error) = greetings.list(&ListParams::default().limit(1)).await {
        match error {
            kube::Error::Api(status) if status.code == 404 => {}
            other => return Err(other.into()),
        }
    }
    let spaces: Api<Namespace> = Api::all(client.clone());
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    spaces.patch(NAMESPACE, &owner, &Patch::Apply(&space)).await?;
    done("install")
}

async fn greet(client: &Client) -> Outcome {
    let api: Api<Greeting> = Api::namespaced(client.clone(), NAMESPACE);
    let asked = Greeting::new("hello", GreetingSpec { text: "Hello".into() });
    api.create(&PostParams::default(), &asked).await?;
    await_condition(api.clone(), "hello", |found: Option<&Greeting>| says(found, "Hello")).await?;
    api.patch("hello", &PatchParams::default(), &Patch::Merge(json!({"spec": {"text": "Good day"}}))).await?;
    await_condition(api, "hello", |found: Option<&Greeting>| says(found, "Good day")).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let made = maps.get("hello").await?;
    expect(made.data == config_map("hello", "Good day").data, "the ConfigMap follows")?;
    done("reconcile")?;
    // The operator creates its ConfigMap again when a user deletes it.
    maps.delete("hello", &DeleteParams::default()).await?;
    let uid = made.uid();
    let again = move |found: Option<&ConfigMap>| found.is_some_and(|map| map.uid().is_some() && map.uid() != uid);
    await_condition(maps, "hello", again).await?;
    done("repair")
}

fn says(found: Option<&Greeting>, text: &str) -> bool {
    let status = found.and_then(|greeting| greeting.status.as_ref().map(|status| (greeting, status)));
    status.is_some_and(|(greeting, status)| {
        status.said == text && Some(status.observed_generation) == greeting.metadata.generation
    })
}

async fn contest(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let other = config_map("hello", "mine");
    match maps.patch("hello", &PatchParams::apply("rival"), &Patch::Apply(&other)).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            expect(status.message.contains("conflict with \"greeter\""), &status.message)?;
        }
        other => return Err(format!("a conflict was expected: {other:?}").into()),
    }
    done("conflict")
}

async fn scale(client: &Client) -> Outcome {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    });
    deployments.patch("web", &PatchParams::apply("user"), &Patch::Apply(&web)).await?;
    let scale = deployments.get_scale("web").await?;
    expect(scale.spec.and_then(|spec| spec.replicas) == Some(1), "one replica by default")?;
    deployments.patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}}))).await?;
    let found = deployments.get("web").await?;
    expect(found.spec.replicas == Some(3), "scaled to three")?;
    done("scale")
}

async fn look(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let selected = ListParams::default().fields("metadata.name=hello").limit(1);
    let found = maps.list_metadata(&selected).await?;
    expect(found.items.len() == 1 && found.items[0].name_any() == "hello", "metadata by field selector")?;
    let config = watcher::Config::default().streaming_lists().fields("metadata.name=hello");
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), NAMESPACE);
    let mut seen = watcher::watcher(metadata, config).applied_objects().boxed();
    let first = seen.try_next().await?.ok_or("the watch ended")?;
    expect(first.name_any() == "hello", "the initial state by WatchList")?;
    maps.patch("hello", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}))).await?;
    while seen.try_next().await?.ok_or("the watch ended")?.labels().get("seen").is_none() {}
    done("watch")
}

async fn leave(client: &Client) -> Outcome {
    let api: Api<Greeting> = Api::namespaced(client.clone(), NAMESPACE);
    let uid = api.get("hello").await?.uid().ok_or("no uid")?;
    api.delete("hello", &DeleteParams::default()).await?;
    await_condition(api, "hello", conditions::is_deleted(&uid)).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    expect(maps.get_opt("hello-farewell").await?.is_some(), "the finalizer ran")?;
    done("finalizer")?;
    let removed = maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("seen=yes")).await?;
    removed.map_left(|list| list.items.len());
    expect(maps.get_opt("hello").await?.is_none(), "deleted by label")?;
    done("delete")
}

fn expect(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn done(step: &str) -> Outcome {
    println!("ok {step}");
    Ok(())
}

async fn use_it(client: &Client) -> Outcome {
    greet(client).await?;
    contest(client).await?;
    scale(client).await?;
    look(client).await?;
    leave(client).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let client = Client::try_default().await?;
    install(&client).await?;
    tokio::select! {
        () = operate(client.clone()) => Err("the operator ended".into()),
        result = use_it(&client) => result,
        () = tokio::time::sleep(Duration::from_secs(240)) => Err("not finished within four minutes".into()),
    }
}

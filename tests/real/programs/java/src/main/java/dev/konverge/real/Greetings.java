package dev.konverge.real;

import static dev.konverge.real.Main.PATIENCE;
import static dev.konverge.real.Main.check;
import static dev.konverge.real.Main.done;
import static dev.konverge.real.Main.equal;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** An operator of the Java Operator SDK: it gives Greetings a status and a finalizer. */
final class Greetings {
  private static final String DEFINITION = """
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: greetings.java.konverge.dev}
      spec:
        group: java.konverge.dev
        scope: Namespaced
        names: {kind: Greeting, plural: greetings, singular: greeting}
        versions:
        - name: v1
          served: true
          storage: true
          subresources: {status: {}}
          schema:
            openAPIV3Schema:
              type: object
              properties:
                spec: {type: object, properties: {text: {type: string}}}
                status: {type: object, properties: {text: {type: string}}}
      """;

  public static final class Text {
    public String text;
  }

  @Group("java.konverge.dev")
  @Version("v1")
  public static final class Greeting extends CustomResource<Text, Text> implements Namespaced {
  }

  @ControllerConfiguration(name = "greetings")
  public static final class GreetingReconciler implements Reconciler<Greeting>, Cleaner<Greeting> {
    final CountDownLatch cleaned = new CountDownLatch(1);

    @Override
    public UpdateControl<Greeting> reconcile(Greeting greeting, Context<Greeting> context) {
      Greeting answer = new Greeting();
      answer.setMetadata(new ObjectMetaBuilder()
          .withName(greeting.getMetadata().getName()).withNamespace(greeting.getMetadata().getNamespace()).build());
      answer.setStatus(new Text());
      answer.getStatus().text = greeting.getSpec().text;
      return UpdateControl.patchStatus(answer);
    }

    @Override
    public DeleteControl cleanup(Greeting greeting, Context<Greeting> context) {
      cleaned.countDown();
      return DeleteControl.defaultDelete();
    }
  }

  private final KubernetesClient client;

  Greetings(KubernetesClient client) {
    this.client = client;
  }

  void run() throws Exception {
    CustomResourceDefinition definition = Serialization.unmarshal(DEFINITION, CustomResourceDefinition.class);
    client.resource(definition).create();
    client.resource(definition).waitUntilCondition(Greetings::isEstablished, PATIENCE, TimeUnit.SECONDS);
    awaitServed();
    GreetingReconciler reconciler = new GreetingReconciler();
    Operator operator = new Operator(settings -> settings
        .withKubernetesClient(client).withCloseClientOnStop(false));
    operator.register(reconciler);
    operator.start();
    var greetings = client.resources(Greeting.class).inNamespace(Objects.NAMESPACE);
    Greeting greeting = new Greeting();
    greeting.setMetadata(new ObjectMetaBuilder().withName("hello").withNamespace(Objects.NAMESPACE).build());
    greeting.setSpec(new Text());
    greeting.getSpec().text = "Hello";
    greetings.resource(greeting).create();
    Greeting found = greetings.withName("hello").waitUntilCondition(
        seen -> seen != null && seen.getStatus() != null, PATIENCE, TimeUnit.SECONDS);
    equal("Hello", found.getStatus().text);
    equal(1, found.getMetadata().getFinalizers().size());
    greetings.withName("hello").delete();
    check(reconciler.cleaned.await(PATIENCE, TimeUnit.SECONDS), "cleanup was not called");
    greetings.withName("hello").waitUntilCondition(seen -> seen == null, PATIENCE, TimeUnit.SECONDS);
    operator.stop();
    done("operator");
  }

  private static boolean isEstablished(CustomResourceDefinition definition) {
    return definition != null && definition.getStatus() != null && definition.getStatus().getConditions().stream()
        .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True"));
  }

  /** Even then a real server answers 404 for a moment. */
  private void awaitServed() throws InterruptedException {
    for (int turn = 0; turn < 10 * PATIENCE; turn++) {
      try {
        client.resources(Greeting.class).inNamespace(Objects.NAMESPACE).list();
        return;
      } catch (KubernetesClientException error) {
        check(error.getCode() == 404 || error.getCode() == 429, error);
        Thread.sleep(100);
      }
    }
  }
}

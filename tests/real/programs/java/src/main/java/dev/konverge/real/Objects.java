package dev.konverge.real;

import static dev.konverge.real.Main.PATIENCE;
import static dev.konverge.real.Main.check;
import static dev.konverge.real.Main.done;
import static dev.konverge.real.Main.equal;
import static dev.konverge.real.Main.refused;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.RollableScalableResource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElector;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Objects that nobody runs: create, list, apply, patch, watch, an informer, an operator, an election, delete. */
final class Objects {
  static final String NAMESPACE = "java-client";
  private final KubernetesClient client;

  Objects(KubernetesClient client) {
    this.client = client;
  }

  void run() throws Exception {
    client.resource(new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
    createAndList();
    applyAndPatch();
    watch();
    inform();
    new Greetings(client).run();
    elect();
    remove();
  }

  private ConfigMap configMap(String name, Map<String, String> labels) {
    return new ConfigMapBuilder()
        .withNewMetadata().withNamespace(NAMESPACE).withName(name).withLabels(labels).endMetadata()
        .addToData("colour", "green")
        .build();
  }

  private void createAndList() {
    for (int number = 0; number < 5; number++) {
      client.resource(configMap("m" + number, Map.of("even", String.valueOf(number % 2 == 0)))).create();
    }
    var maps = client.configMaps().inNamespace(NAMESPACE);
    equal(3, maps.withLabel("even", "true").list().getItems().size());
    equal(1, maps.withField("metadata.name", "m3").list().getItems().size());
    refused(409, () -> client.resource(configMap("m0", Map.of())).create());
    done("create");
    done("list");
  }

  private static Deployment deployment(Map<String, String> labels) {
    return new DeploymentBuilder()
        .withNewMetadata().withNamespace(NAMESPACE).withName("web").withLabels(labels).endMetadata()
        .withNewSpec()
        .withNewSelector().addToMatchLabels("app", "web").endSelector()
        .withNewTemplate()
        .withNewMetadata().addToLabels("app", "web").endMetadata()
        .withNewSpec().addNewContainer().withName("web").withImage("nginx").endContainer().endSpec()
        .endTemplate()
        .endSpec()
        .build();
  }

  private void applyAndPatch() {
    client.resource(deployment(Map.of("tier", "front"))).fieldManager("java").serverSideApply();
    client.resource(deployment(Map.of("tier", "back"))).fieldManager("java").serverSideApply();
    RollableScalableResource<Deployment> web = client.apps().deployments().inNamespace(NAMESPACE).withName("web");
    Deployment first = web.get();
    equal("back", first.getMetadata().getLabels().get("tier"));
    refused(409, () -> client.resource(deployment(Map.of("tier", "side"))).fieldManager("other").serverSideApply());
    client.resource(deployment(Map.of("tier", "side"))).fieldManager("other").forceConflicts().serverSideApply();
    done("apply");
    String more = "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"log\",\"image\":\"busybox\"}]}}}}";
    web.patch(PatchContext.of(PatchType.STRATEGIC_MERGE), more);
    equal(2, web.get().getSpec().getTemplate().getSpec().getContainers().size());
    web.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"metadata\":{\"labels\":{\"tier\":null}}}");
    web.patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"add\",\"path\":\"/spec/paused\",\"value\":true}]");
    web.edit(found -> new DeploymentBuilder(found).editSpec().withMinReadySeconds(7).endSpec().build());
    Deployment patched = web.get();
    check(!patched.getMetadata().getLabels().containsKey("tier"), patched.getMetadata().getLabels());
    equal(true, patched.getSpec().getPaused());
    equal(7, patched.getSpec().getMinReadySeconds());
    done("patch");
    equal(4, web.scale(4).getSpec().getReplicas());
    done("scale");
    refused(409, () -> client.resource(first).lockResourceVersion().update());
    done("conflict");
  }

  private void watch() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    var maps = client.configMaps().inNamespace(NAMESPACE);
    try (Watch watch = maps.withLabel("watched", "yes").watch(new Watcher<ConfigMap>() {
      @Override
      public void eventReceived(Action action, ConfigMap map) {
        seen.add(action + " " + map.getData());
      }

      @Override
      public void onClose(WatcherException cause) {
        seen.add("closed " + cause);
      }
    })) {
      client.resource(configMap("seen", Map.of("watched", "yes"))).create();
      maps.withName("seen").edit(found -> new ConfigMapBuilder(found).addToData("colour", "red").build());
      maps.withName("seen").delete();
      for (String expected : List.of("ADDED {colour=green}", "MODIFIED {colour=red}", "DELETED {colour=red}")) {
        equal(expected, seen.poll(PATIENCE, TimeUnit.SECONDS));
      }
    }
    done("watch");
  }

  private void inform() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    var maps = client.configMaps().inNamespace(NAMESPACE);
    try (SharedIndexInformer<ConfigMap> informer = maps.withLabel("even", "false").inform(new ResourceEventHandler<>() {
      @Override
      public void onAdd(ConfigMap map) {
        seen.add("add " + map.getMetadata().getName());
      }

      @Override
      public void onUpdate(ConfigMap before, ConfigMap after) {
        seen.add("update " + before.getData() + " " + after.getData());
      }

      @Override
      public void onDelete(ConfigMap map, boolean unknown) {
        seen.add("delete " + map.getMetadata().getName());
      }
    })) {
      equal(List.of("add m1", "add m3"), List.of(next(seen), next(seen)).stream().sorted().toList());
      check(informer.hasSynced(), informer);
      maps.withName("m1").edit(found -> new ConfigMapBuilder(found).addToData("colour", "red").build());
      equal("update {colour=green} {colour=red}", next(seen));
      maps.withName("m3").delete();
      equal("delete m3", next(seen));
    }
    done("informer");
  }

  private static String next(BlockingQueue<String> seen) throws InterruptedException {
    return String.valueOf(seen.poll(PATIENCE, TimeUnit.SECONDS));
  }

  private LeaderElector elector(String identity, BlockingQueue<String> seen) {
    return client.leaderElector().withConfig(new LeaderElectionConfigBuilder()
        .withName("election")
        .withLock(new LeaseLock(NAMESPACE, "election", identity))
        .withLeaseDuration(Duration.ofSeconds(15))
        .withRenewDeadline(Duration.ofSeconds(10))
        .withRetryPeriod(Duration.ofMillis(200))
        .withReleaseOnCancel(true)
        .withLeaderCallbacks(new LeaderCallbacks(
            () -> seen.add(identity + " leads"), () -> seen.add(identity + " leads no more"), leader -> { }))
        .build()).build();
  }

  private void elect() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    CompletableFuture<?> one = elector("one", seen).start();
    equal("one leads", next(seen));
    CompletableFuture<?> two = elector("two", seen).start();
    equal("one", client.leases().inNamespace(NAMESPACE).withName("election").get().getSpec().getHolderIdentity());
    one.cancel(true);
    equal(List.of("one leads no more", "two leads"), List.of(next(seen), next(seen)));
    equal("two", client.leases().inNamespace(NAMESPACE).withName("election").get().getSpec().getHolderIdentity());
    two.cancel(true);
    done("election");
  }

  private void remove() {
    client.apps().deployments().inNamespace(NAMESPACE).withName("web").delete();
    check(client.apps().deployments().inNamespace(NAMESPACE).withName("web").get() == null, "still there");
    String message = refused(422, () -> client.resource(configMap("Bad Name", Map.of())).create()).getMessage();
    check(message.contains("a lowercase RFC 1123 subdomain"), message);
    done("delete");
  }
}

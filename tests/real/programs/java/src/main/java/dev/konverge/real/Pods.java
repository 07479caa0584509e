package dev.konverge.real;

import static dev.konverge.real.Main.PATIENCE;
import static dev.konverge.real.Main.check;
import static dev.konverge.real.Main.done;
import static dev.konverge.real.Main.equal;

import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.LocalPortForward;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import io.fabric8.kubernetes.client.dsl.LogWatch;
import io.fabric8.kubernetes.client.dsl.PodResource;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.TimeUnit;

/** A pod that runs: its log, commands in it, a way to its port. The image `web` serves /index.html at port 8080. */
final class Pods {
  private final KubernetesClient client;

  Pods(KubernetesClient client) {
    this.client = client;
  }

  void run() throws Exception {
    client.resource(new PodBuilder()
        .withNewMetadata().withNamespace("default").withName("java").endMetadata()
        .withNewSpec()
        .withTerminationGracePeriodSeconds(1L)
        .addNewContainer().withName("web").withImage("web:1")
        .addNewPort().withName("http").withContainerPort(8080).endPort()
        .withNewReadinessProbe().withPeriodSeconds(1)
        .withNewHttpGet().withPath("/index.html").withNewPort("http").endHttpGet().endReadinessProbe()
        .endContainer()
        .endSpec()
        .build()).create();
    PodResource pod = client.pods().inNamespace("default").withName("java");
    pod.waitUntilReady(PATIENCE, TimeUnit.SECONDS);
    done("run");
    logs(pod);
    exec(pod);
    forward(pod);
    pod.delete();
    pod.waitUntilCondition(found -> found == null, PATIENCE, TimeUnit.SECONDS);
    done("delete");
  }

  private static void logs(PodResource pod) throws Exception {
    check(pod.getLog().contains("GET /index.html"), pod.getLog());
    equal(1L, pod.tailingLines(1).getLog().lines().count());
    try (LogWatch watch = pod.watchLog();
        BufferedReader lines = new BufferedReader(new InputStreamReader(watch.getOutput()))) {
      for (int line = 0; line < 3; line++) {
        check(lines.readLine() != null, "the log has ended"); // probes go on
      }
    }
    done("logs");
  }

  private static void exec(PodResource pod) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream error = new ByteArrayOutputStream();
    try (ExecWatch watch = pod.writingOutput(out).writingError(error)
        .exec("sh", "-c", "echo to the output; echo to the error >&2; exit 7")) {
      equal(7, watch.exitCode().get(PATIENCE, TimeUnit.SECONDS));
    }
    equal("to the output\n", out.toString());
    equal("to the error\n", error.toString());
    ByteArrayOutputStream echoed = new ByteArrayOutputStream();
    try (ExecWatch watch = pod.redirectingInput().writingOutput(echoed).exec("head", "-n", "1")) {
      watch.getInput().write("a line\n".getBytes());
      watch.getInput().flush();
      equal(0, watch.exitCode().get(PATIENCE, TimeUnit.SECONDS));
    }
    equal("a line\n", echoed.toString());
    done("exec");
  }

  private static void forward(PodResource pod) throws Exception {
    try (LocalPortForward forward = pod.portForward(8080)) {
      URI page = URI.create("http://127.0.0.1:" + forward.getLocalPort() + "/index.html");
      HttpResponse<String> answer = HttpClient.newHttpClient()
          .send(HttpRequest.newBuilder(page).build(), HttpResponse.BodyHandlers.ofString());
      equal("a page", answer.body());
    }
    done("port-forward");
  }
}

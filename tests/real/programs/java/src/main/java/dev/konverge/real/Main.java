package dev.konverge.real;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;

/** `objects` is what works on every server; `pods` needs something that runs them. Each step prints `ok <step>`. */
public final class Main {
  static final int PATIENCE = 120;

  public static void main(String[] arguments) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      switch (arguments[0]) {
        case "objects" -> new Objects(client).run();
        case "pods" -> new Pods(client).run();
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
    System.exit(0); // threads of the HTTP client may take a while
  }

  static void done(String step) {
    System.out.println("ok " + step);
  }

  static void check(boolean holds, Object found) {
    if (!holds) {
      throw new AssertionError("not as expected: " + found);
    }
  }

  static void equal(Object expected, Object found) {
    check(expected.equals(found), found + ", expected " + expected);
  }

  /** The refusal of a request, which must have this code. */
  static KubernetesClientException refused(int code, Runnable request) {
    try {
      request.run();
    } catch (KubernetesClientException error) {
      equal(code, error.getCode());
      return error;
    }
    throw new AssertionError(code + " was expected");
  }
}

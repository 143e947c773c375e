package tessera.contract;

import com.google.gson.Gson;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import java.io.FileReader;
import java.io.Reader;
import java.util.LinkedHashMap;
import java.util.Map;

/** Runs every check against an API server and prints one line of JSON for each: its name, and the error if there was one. */
public final class Contract {
  private Contract() {}

  @FunctionalInterface
  interface Check {
    void run() throws Exception;
  }

  /** Arguments: a kubeconfig, a namespace, the group of a custom resource called widgets that may hold anything. */
  public static void main(String[] arguments) throws Exception {
    Checks checks = new Checks(connect(arguments[0]), arguments[1], arguments[2]);
    Gson gson = new Gson().newBuilder().serializeNulls().create();
    checks.all().forEach((name, check) -> System.out.println(gson.toJson(verdict(name, check))));
    System.exit(0); // the client's threads would keep the process alive
  }

  private static ApiClient connect(String kubeconfig) throws Exception {
    try (Reader file = new FileReader(kubeconfig)) {
      return ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(file)).build();
    }
  }

  private static Map<String, String> verdict(String name, Check check) {
    Map<String, String> verdict = new LinkedHashMap<>();
    verdict.put("check", name);
    verdict.put("error", errorOf(check));
    return verdict;
  }

  private static String errorOf(Check check) {
    try {
      check.run();
      return null;
    } catch (ApiException refused) {
      return refused.getCode() + ": " + refused.getResponseBody();
    } catch (Exception | AssertionError error) {
      return error.toString();
    }
  }
}

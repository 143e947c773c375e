package tessera.contract;

import com.google.gson.reflect.TypeToken;
import io.kubernetes.client.custom.Quantity;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.apis.CustomObjectsApi;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.openapi.models.V1ResourceRequirements;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** What the Java HAMi client does with an API server, and what other Java programs may expect to do. */
final class Checks {
  private final ApiClient client;
  private final CoreV1Api core;
  private final CustomObjectsApi custom;
  private final String namespace;
  private final String group;

  Checks(ApiClient client, String namespace, String group) {
    this.client = client;
    this.core = new CoreV1Api(client);
    this.custom = new CustomObjectsApi(client);
    this.namespace = namespace;
    this.group = group;
  }

  Map<String, Contract.Check> all() {
    Map<String, Contract.Check> checks = new LinkedHashMap<>();
    checks.put("pods", this::makeTheRoundTripWithAPod);
    checks.put("selectors", this::listWithSelectors);
    checks.put("refusals", this::readTheStatusOfARefusal);
    checks.put("watch", this::watchFromAVersion);
    checks.put("patches", this::patchInThreeWays);
    checks.put("apply", this::applyOnTheServerSide);
    checks.put("custom objects", this::makeTheRoundTripWithACustomObject);
    return checks;
  }

  private void makeTheRoundTripWithAPod() throws ApiException {
    core.createNamespacedPod(namespace, pod("round-trip")).execute();
    V1Pod read = core.readNamespacedPod("round-trip", namespace).execute();
    Map<String, Quantity> limits = read.getSpec().getContainers().get(0).getResources().getLimits();
    same(8000L, limits.get("nvidia.com/gpumem").getNumber().longValueExact());
    read.getMetadata().putLabelsItem("team", "ml");
    V1Pod replaced = core.replaceNamespacedPod("round-trip", namespace, read).execute();
    same("ml", replaced.getMetadata().getLabels().get("team"));
    core.deleteNamespacedPod("round-trip", namespace).execute();
    same(404, statusOf(() -> core.readNamespacedPod("round-trip", namespace).execute()));
  }

  private void listWithSelectors() throws ApiException {
    core.createNamespacedPod(namespace, pod("selected")).execute();
    same(1, core.listNamespacedPod(namespace).labelSelector("app=selected").execute().getItems().size());
    same(0, core.listNamespacedPod(namespace).labelSelector("app!=selected").execute().getItems().size());
    same(1, core.listNamespacedPod(namespace).fieldSelector("status.phase=Pending").execute().getItems().size());
    same(0, core.listNode().labelSelector("gpu=nowhere").execute().getItems().size());
    core.deleteNamespacedPod("selected", namespace).execute();
  }

  private void readTheStatusOfARefusal() throws ApiException {
    core.createNamespacedConfigMap(namespace, configMap("twice")).execute();
    same(409, statusOf(() -> core.createNamespacedConfigMap(namespace, configMap("twice")).execute()));
    try {
      core.readNamespacedPod("absent", namespace).execute();
    } catch (ApiException refused) {
      require(refused.getResponseBody().contains("\"reason\":\"NotFound\""), refused.getResponseBody());
    }
  }

  private void watchFromAVersion() throws Exception {
    String version = core.listNamespacedPod(namespace).execute().getMetadata().getResourceVersion();
    core.createNamespacedPod(namespace, pod("watched")).execute();
    core.deleteNamespacedPod("watched", namespace).execute();
    var call = core.listNamespacedPod(namespace).resourceVersion(version).watch(true).timeoutSeconds(20).buildCall(null);
    List<String> seen = new ArrayList<>();
    try (Watch<V1Pod> watch = Watch.createWatch(client, call, new TypeToken<Watch.Response<V1Pod>>() {}.getType())) {
      for (Watch.Response<V1Pod> event : watch) {
        seen.add(event.type + " " + event.object.getMetadata().getName());
        if (event.type.equals("DELETED")) {
          break;
        }
      }
    }
    same("ADDED watched", seen.get(0));
    same("DELETED watched", seen.get(seen.size() - 1));
  }

  private void patchInThreeWays() throws ApiException {
    core.createNamespacedConfigMap(namespace, configMap("patched")).execute();
    patch("patched", V1Patch.PATCH_FORMAT_JSON_PATCH, "[{\"op\":\"add\",\"path\":\"/data/a\",\"value\":\"1\"}]");
    patch("patched", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"b\":\"2\",\"colour\":null}}");
    V1ConfigMap last = patch("patched", V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH, "{\"data\":{\"c\":\"3\"}}");
    same(Map.of("a", "1", "b", "2", "c", "3"), last.getData());
  }

  private V1ConfigMap patch(String name, String format, String body) throws ApiException {
    return PatchUtils.patch(
        V1ConfigMap.class,
        () -> core.patchNamespacedConfigMap(name, namespace, new V1Patch(body)).buildCall(null),
        format,
        client);
  }

  private void applyOnTheServerSide() throws ApiException {
    same(Map.of("colour", "red"), apply("red", "one", false).getData());
    same(409, statusOf(() -> apply("blue", "other", false)));
    same(Map.of("colour", "blue"), apply("blue", "other", true).getData());
  }

  private V1ConfigMap apply(String colour, String manager, boolean force) throws ApiException {
    String metadata = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"applied\"}";
    V1Patch body = new V1Patch(metadata + ",\"data\":{\"colour\":\"" + colour + "\"}}");
    return PatchUtils.patch(
        V1ConfigMap.class,
        () ->
            core.patchNamespacedConfigMap("applied", namespace, body)
                .fieldManager(manager)
                .force(force)
                .buildCall(null),
        V1Patch.PATCH_FORMAT_APPLY_YAML,
        client);
  }

  private void makeTheRoundTripWithACustomObject() throws ApiException {
    Map<String, Object> metadata = Map.of("name", "w", "labels", Map.of("app", "training"));
    Map<String, Object> widget =
        Map.of("apiVersion", group + "/v1", "kind", "Widget", "metadata", metadata, "spec", Map.of("workers", "2"));
    custom.createNamespacedCustomObject(group, "v1", namespace, "widgets", widget).execute();
    Object read = custom.getNamespacedCustomObject(group, "v1", namespace, "widgets", "w").execute();
    same(Map.of("workers", "2"), ((Map<?, ?>) read).get("spec"));
    Object listed =
        custom.listNamespacedCustomObject(group, "v1", namespace, "widgets").labelSelector("app=training").execute();
    same(1, ((List<?>) ((Map<?, ?>) listed).get("items")).size());
    custom.deleteNamespacedCustomObject(group, "v1", namespace, "widgets", "w").execute();
    same(404, statusOf(() -> custom.getNamespacedCustomObject(group, "v1", namespace, "widgets", "w").execute()));
  }

  private static V1Pod pod(String name) {
    Map<String, Quantity> limits = Map.of("nvidia.com/gpu", new Quantity("2"), "nvidia.com/gpumem", new Quantity("8000"));
    V1Container container =
        new V1Container()
            .name("main")
            .image("registry.invalid/none")
            .resources(new V1ResourceRequirements().limits(limits));
    return new V1Pod()
        .metadata(new V1ObjectMeta().name(name).putLabelsItem("app", name))
        // Left alone, overhead is sent as an empty object, and a server with RuntimeClass admission refuses that.
        .spec(new V1PodSpec().schedulerName("nobody").addContainersItem(container).overhead(null));
  }

  private static V1ConfigMap configMap(String name) {
    return new V1ConfigMap().metadata(new V1ObjectMeta().name(name)).putDataItem("colour", "red");
  }

  private static int statusOf(Contract.Check request) throws ApiException {
    try {
      request.run();
      return 200;
    } catch (ApiException refused) {
      return refused.getCode();
    } catch (Exception error) {
      throw new ApiException(error);
    }
  }

  private static void same(Object expected, Object actual) {
    require(Objects.equals(expected, actual), "expected " + expected + " and got " + actual);
  }

  private static void require(boolean holds, String complaint) {
    if (!holds) {
      throw new AssertionError(complaint);
    }
  }
}

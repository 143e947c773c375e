import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.kubernetes.client.custom.Quantity;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1Node;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodCondition;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.openapi.models.V1ResourceRequirements;
import io.kubernetes.client.util.ClientBuilder;
import java.io.IOException;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A client for accelerators that are shared as HAMi shares them, on the official Kubernetes client and nothing else.
 *
 * <p>There is no API beside that of Kubernetes: what a node has and what a pod was given stands in annotations. This
 * file reads them, makes pods that ask for parts of cards, waits for the scheduler's decision, and tells in a sentence
 * what is wrong when there is none. It is made to be copied.
 */
public final class HAMiClient {
  static final String GPU_NODES = "gpu=on";
  private static final Duration DECISION = Duration.ofSeconds(30);
  private static final Duration POLL = Duration.ofMillis(250);
  private static final String REQUEST = "hami-client/request";

  private final Requests requests;
  private final CoreV1Api core;

  /** Finds its cluster as kubectl does: KUBECONFIG, ~/.kube/config, or the service account of a pod. */
  public HAMiClient() {
    this(Requests.findCluster());
  }

  /** For credentials of any other kind. */
  public HAMiClient(ApiClient client) {
    requests = new Requests(client.getBasePath());
    core = new CoreV1Api(client);
  }

  public List<NodeInfo> listGPUNodes(String labelSelector) {
    Instant now = Instant.now();
    return requests.call("listing nodes", () -> core.listNode().labelSelector(labelSelector).execute()).getItems()
        .stream()
        .map(node -> Reading.node(node, now))
        .toList();
  }

  /** Pods of all namespaces that ask for a device. */
  public List<SchedulingInfo> listGPUPods() {
    return requests.call("listing pods", () -> core.listPodForAllNamespaces().execute()).getItems().stream()
        .filter(Reading::asksForDevices)
        .map(Reading::pod)
        .toList();
  }

  /** Memory and cores are of each card; null gives cards whole. A null command leaves the image's own. */
  public PodInfo createGPUPod(
      String podName,
      String namespace,
      String image,
      int gpuCount,
      Integer gpuMemoryMB,
      Integer gpuCores,
      List<String> command) {
    String request = UUID.randomUUID().toString();
    V1Pod pod = podOf(podName, image, limitsOf(gpuCount, gpuMemoryMB, gpuCores), command, request);
    String doing = "creating pod " + namespace + "/" + podName;
    try {
      return new PodInfo(requests.call(doing, () -> core.createNamespacedPod(namespace, pod).execute()));
    } catch (HAMiException refused) {
      return new PodInfo(findCreated(request, podName, namespace, refused));
    }
  }

  /** Where the pod is and what it holds, or why it has no node. A scheduler that has not decided is waited for. */
  public SchedulingInfo getPodSchedulingInfo(String podName, String namespace) {
    return Reading.pod(waitFor(Reading::isDecided, podName, namespace, DECISION));
  }

  /** As above, but a refusal is not the end: what does not fit may fit later. */
  public SchedulingInfo waitUntilScheduled(String podName, String namespace, Duration patience) {
    SchedulingInfo info = Reading.pod(waitFor(pod -> Reading.nodeOf(pod) != null, podName, namespace, patience));
    if (info.node == null) {
      throw new HAMiException(info.problem);
    }
    return info;
  }

  public void deletePod(String podName, String namespace) {
    requests.call(
        "deleting pod " + namespace + "/" + podName,
        () -> core.deleteNamespacedPod(podName, namespace).gracePeriodSeconds(0).execute());
  }

  /** A sentence for each node that does not report and each pod that waits; none where all is well. */
  public List<String> findProblems(String labelSelector) {
    List<NodeInfo> nodes = listGPUNodes(labelSelector);
    if (nodes.isEmpty()) {
      return List.of(
          "no node has the label %s; give it to one: kubectl label node NODE %1$s".formatted(labelSelector));
    }
    List<String> problems = new ArrayList<>();
    nodes.forEach(node -> problems.addAll(node.problems));
    listGPUPods().stream().filter(pod -> pod.phase.equals("Pending")).map(pod -> pod.problem).filter(Objects::nonNull)
        .forEach(problems::add);
    return problems;
  }

  private V1Pod waitFor(Predicate<V1Pod> isSo, String podName, String namespace, Duration patience) {
    Instant until = Instant.now().plus(patience);
    V1Pod pod = read(podName, namespace);
    while (!isSo.test(pod) && Instant.now().isBefore(until)) {
      Requests.pause(POLL);
      pod = read(podName, namespace);
    }
    return pod;
  }

  private V1Pod read(String podName, String namespace) {
    return requests.call(
        "reading pod " + namespace + "/" + podName, () -> core.readNamespacedPod(podName, namespace).execute());
  }

  /** The pod, if a try of ours has made it although its answer was lost; otherwise what went wrong. */
  private V1Pod findCreated(String request, String podName, String namespace, HAMiException refused) {
    try {
      V1Pod pod = read(podName, namespace);
      if (request.equals(Reading.annotationsOf(pod.getMetadata()).get(REQUEST))) {
        return pod;
      }
    } catch (HAMiException unreadable) {
      throw refused;
    }
    throw refused;
  }

  private static Map<String, Quantity> limitsOf(int count, Integer memoryMB, Integer cores) {
    Map<String, Quantity> limits = new LinkedHashMap<>();
    limits.put("nvidia.com/gpu", new Quantity(Integer.toString(count)));
    if (memoryMB != null) {
      limits.put("nvidia.com/gpumem", new Quantity(memoryMB.toString()));
    }
    if (cores != null) {
      limits.put("nvidia.com/gpucores", new Quantity(cores.toString()));
    }
    return limits;
  }

  /** No scheduler is named: the webhook sends whoever asks for a device to the right one. */
  private static V1Pod podOf(
      String name, String image, Map<String, Quantity> limits, List<String> command, String request) {
    V1Container container =
        new V1Container().name("main").image(image).resources(new V1ResourceRequirements().limits(limits));
    if (command != null) {
      container.command(command);
    }
    return new V1Pod()
        .metadata(new V1ObjectMeta().name(name).putAnnotationsItem(REQUEST, request))
        .spec(new V1PodSpec().addContainersItem(container).restartPolicy("Never"));
  }

  /** Shows a cluster, places a small pod on it and removes it again. */
  public static void main(String[] arguments) {
    try {
      new Tour(new HAMiClient()).show();
    } catch (HAMiException failed) {
      System.err.println(failed.getMessage());
      System.exit(1);
    }
  }
}

/** Something failed; the message is one sentence that says what, where, and what to do. */
class HAMiException extends RuntimeException {
  HAMiException(String sentence) {
    super(sentence);
  }
}

/** One card of a node; up to `split` containers share it, cores are percent. */
record Device(
    String vendor,
    String uuid,
    int index,
    String type,
    int memoryMB,
    int cores,
    int split,
    int numa,
    String mode,
    boolean healthy) {}

/** A part of a card that a container holds; containers are counted from 0, init containers first. */
record AllocatedDevice(int container, String uuid, String type, int memoryMB, int cores) {}

/** What a device plugin and its scheduler last said to each other; `at` is null where it cannot be read. */
record Handshake(String state, Instant at) {}

/** A node, its cards, and a sentence for everything that looks wrong. */
final class NodeInfo {
  public final String name;
  public final List<Device> devices;
  public final Map<String, Handshake> handshakes;
  public final List<String> problems;

  NodeInfo(String name, List<Device> devices, Map<String, Handshake> handshakes, List<String> problems) {
    this.name = name;
    this.devices = devices;
    this.handshakes = handshakes;
    this.problems = problems;
  }
}

final class PodInfo {
  public final String name;
  public final String namespace;
  public final String uid;
  public final String phase;

  PodInfo(V1Pod pod) {
    name = pod.getMetadata().getName();
    namespace = pod.getMetadata().getNamespace();
    uid = pod.getMetadata().getUid();
    phase = pod.getStatus().getPhase();
  }
}

/** Where a pod is and what it holds. Without a node, `problem` says why; `scheduledAt` may be null. */
final class SchedulingInfo {
  public final String name;
  public final String namespace;
  public final String phase;
  public final String node;
  public final Instant scheduledAt;
  public final List<AllocatedDevice> allocatedDevices;
  public final String problem;

  SchedulingInfo(
      V1Pod pod, String node, Instant scheduledAt, List<AllocatedDevice> allocatedDevices, String problem) {
    this.name = pod.getMetadata().getName();
    this.namespace = pod.getMetadata().getNamespace();
    this.phase = pod.getStatus().getPhase();
    this.node = node;
    this.scheduledAt = scheduledAt;
    this.allocatedDevices = allocatedDevices;
    this.problem = problem;
  }
}

/** Annotations in every form that has been seen. */
final class Annotations {
  private static final Pattern REGISTER = Pattern.compile("hami\\.io/node-(?:(.+)-register|register-(.+))");
  private static final List<String> FIELDS =
      List.of("id", "count", "devmem", "devcore", "type", "numa", "health", "index", "mode");
  private static final Pattern ALLOCATION =
      Pattern.compile("hami\\.io/(?!device-allocated$)(?:(.+?)-)??(?:devices-)?(allocated|to-allocate)");
  private static final Pattern TIME =
      Pattern.compile(
          "(\\d{4})[-.](\\d\\d)[-.](\\d\\d)[ T](\\d\\d:\\d\\d:\\d\\d)(?:[.,]\\d+)?\\s?(Z|[+-]\\d\\d:?\\d\\d)?");

  private Annotations() {}

  /** The cards of a node's register: seven fields, nine fields, or JSON. */
  static List<Device> parseRegister(String text, String vendor) {
    List<Device> devices = new ArrayList<>();
    for (JsonObject card : cardsOf(text.strip())) {
      devices.add(readCard(card, vendor));
    }
    return devices;
  }

  /** A time that names no zone is UTC. */
  static Handshake parseHandshake(String text) {
    String state = text.contains("Requesting") ? "Requesting" : text.contains("Deleted") ? "Deleted" : "Reported";
    return new Handshake(state, findTime(text));
  }

  /** A device list with a `;` after each container or, as the flat list has it, without. */
  static List<AllocatedDevice> parseAllocation(String text) {
    List<AllocatedDevice> held = new ArrayList<>();
    String[] containers = text.split(";");
    for (int container = 0; container < containers.length; container++) {
      for (String card : containers[container].split(":")) {
        if (card.contains(",") && !card.strip().equals(",,0,0")) {
          held.add(readPart(card, container));
        }
      }
    }
    return held;
  }

  /** The key of each vendor's register. */
  static Map<String, String> registersOf(Map<String, String> annotations) {
    Map<String, String> registers = new TreeMap<>();
    for (String key : annotations.keySet()) {
      Matcher match = REGISTER.matcher(key);
      if (match.matches()) {
        registers.put(match.group(1) != null ? match.group(1) : match.group(2), key);
      }
    }
    return registers;
  }

  /** HAMi's own plugin for NVIDIA uses a key without a vendor; of two the newer counts. */
  static Handshake readHandshake(Map<String, String> annotations, String vendor) {
    List<String> keys = new ArrayList<>(List.of("hami.io/node-handshake-" + vendor));
    if (vendor.equals("nvidia")) {
      keys.add("hami.io/node-handshake");
    }
    return keys.stream().map(annotations::get).filter(Objects::nonNull).map(Annotations::parseHandshake)
        .max(Comparator.comparing(said -> said.at() == null ? Instant.MIN : said.at())).orElse(null);
  }

  /** What a pod holds: each vendor's list, the lasting one first; only without any the flat list of all vendors. */
  static List<AllocatedDevice> readAllocations(Map<String, String> annotations) {
    Map<String, Map<String, String>> lists = new TreeMap<>();
    annotations.forEach(
        (key, text) -> {
          Matcher match = ALLOCATION.matcher(key);
          if (match.matches()) {
            String vendor = Objects.requireNonNullElse(match.group(1), "");
            lists.computeIfAbsent(vendor, ignored -> new TreeMap<>()).put(match.group(2), text);
          }
        });
    Map<String, String> flat = Objects.requireNonNullElse(lists.remove(""), Map.of());
    List<AllocatedDevice> held = lists.values().stream().flatMap(vendor -> lasting(vendor).stream()).toList();
    return held.isEmpty() ? lasting(flat) : held;
  }

  private static List<AllocatedDevice> lasting(Map<String, String> states) {
    List<AllocatedDevice> allocated = parseAllocation(states.getOrDefault("allocated", ""));
    return allocated.isEmpty() ? parseAllocation(states.getOrDefault("to-allocate", "")) : allocated;
  }

  private static List<JsonObject> cardsOf(String text) {
    List<JsonObject> cards = new ArrayList<>();
    if (text.startsWith("[")) {
      parseList(text).forEach(card -> cards.add(card.getAsJsonObject()));
      return cards;
    }
    for (String entry : text.equals("null") ? new String[0] : text.split(":")) {
      if (!entry.isBlank()) {
        cards.add(nameFields(entry, cards.size()));
      }
    }
    return cards;
  }

  private static JsonArray parseList(String text) {
    try {
      JsonArray list = JsonParser.parseString(text).getAsJsonArray();
      for (JsonElement card : list) {
        card.getAsJsonObject();
      }
      return list;
    } catch (JsonParseException | IllegalStateException broken) {
      throw new HAMiException("\"%s\" is no JSON list of cards".formatted(shorten(text)));
    }
  }

  private static JsonObject nameFields(String entry, int position) {
    String[] values = entry.split(",", -1);
    if (values.length != 7 && values.length != 9) {
      throw new HAMiException(
          "card \"%s\" has %d fields, expected 7 or 9".formatted(shorten(entry), values.length));
    }
    JsonObject card = new JsonObject();
    card.addProperty("index", position);
    for (int field = 0; field < values.length; field++) {
      card.addProperty(FIELDS.get(field), values[field].strip());
    }
    return card;
  }

  /** HAMi leaves zeros out of JSON, and with them `health` where it is false. */
  private static Device readCard(JsonObject card, String vendor) {
    String uuid = text(card, "id", "");
    if (uuid.isEmpty()) {
      throw new HAMiException("card \"%s\" has no id".formatted(shorten(card.toString())));
    }
    try {
      return new Device(
          vendor,
          uuid,
          figure(card, "index"),
          text(card, "type", ""),
          figure(card, "devmem"),
          figure(card, "devcore"),
          figure(card, "count"),
          figure(card, "numa"),
          text(card, "mode", "hami-core"),
          List.of("true", "t", "1").contains(text(card, "health", "").toLowerCase()));
    } catch (NumberFormatException broken) {
      throw new HAMiException("card \"%s\" has a figure that is no whole number".formatted(uuid));
    }
  }

  private static String text(JsonObject card, String name, String otherwise) {
    return card.has(name) && card.get(name).isJsonPrimitive() ? card.get(name).getAsString() : otherwise;
  }

  private static int figure(JsonObject card, String name) {
    return Integer.parseInt(text(card, name, "0"));
  }

  private static AllocatedDevice readPart(String card, int container) {
    String[] fields = card.split(",");
    try {
      String uuid = fields[0].strip().replaceFirst("\\[.*", ""); // HAMi up to 2.9 adds [profile-slot] to a MIG slice
      int memoryMB = Integer.parseInt(fields[2].strip());
      return new AllocatedDevice(container, uuid, fields[1].strip(), memoryMB, Integer.parseInt(fields[3].strip()));
    } catch (IndexOutOfBoundsException | NumberFormatException broken) {
      throw new HAMiException("card \"%s\" is not UUID,type,memory,cores".formatted(shorten(card)));
    }
  }

  private static Instant findTime(String text) {
    Matcher match = TIME.matcher(text);
    if (!match.find()) {
      return null;
    }
    try {
      LocalDate day = LocalDate.parse(match.group(1) + "-" + match.group(2) + "-" + match.group(3));
      ZoneOffset zone = ZoneOffset.of(Objects.requireNonNullElse(match.group(5), "Z"));
      return day.atTime(LocalTime.parse(match.group(4))).toInstant(zone);
    } catch (DateTimeException unknown) {
      return null;
    }
  }

  private static String shorten(String text) {
    return text.length() <= 60 ? text : text.substring(0, 57) + "...";
  }
}

/** Nodes and pods as they matter here, and what can be wrong with them. */
final class Reading {
  private static final Duration FRESH = Duration.ofMinutes(5);
  private static final String READ_LOGS = "read its logs: kubectl logs -n kube-system DEVICE-PLUGIN-POD";

  private Reading() {}

  static NodeInfo node(V1Node node, Instant now) {
    Map<String, String> annotations = annotationsOf(node.getMetadata());
    List<Device> devices = new ArrayList<>();
    Map<String, Handshake> handshakes = new TreeMap<>();
    List<String> problems = new ArrayList<>();
    Annotations.registersOf(annotations)
        .forEach(
            (vendor, key) -> {
              try {
                devices.addAll(Annotations.parseRegister(annotations.get(key), vendor));
              } catch (HAMiException unreadable) {
                problems.add(key + ": " + unreadable.getMessage());
              }
              Handshake said = Annotations.readHandshake(annotations, vendor);
              if (said != null) {
                handshakes.put(vendor, said);
                problems.addAll(silence(vendor, said, now));
              }
            });
    if (devices.isEmpty() && problems.isEmpty()) {
      problems.add(
          "no device is registered, expected an annotation such as hami.io/node-nvidia-register; see that a device"
              + " plugin runs there: kubectl get pods -n kube-system -o wide | grep device-plugin");
    }
    String name = node.getMetadata().getName();
    return new NodeInfo(name, devices, handshakes, problems.stream().map(problem -> name + ": " + problem).toList());
  }

  static SchedulingInfo pod(V1Pod pod) {
    Map<String, String> annotations = annotationsOf(pod.getMetadata());
    String node = nodeOf(pod);
    List<AllocatedDevice> held = List.of();
    String problem = node == null ? whyPending(pod) : null;
    try {
      held = Annotations.readAllocations(annotations);
    } catch (HAMiException unreadable) {
      problem = Objects.requireNonNullElse(problem, nameOf(pod) + ": " + unreadable.getMessage());
    }
    return new SchedulingInfo(pod, node, unixTime(annotations.get("hami.io/vgpu-time")), held, problem);
  }

  static String nodeOf(V1Pod pod) {
    String bound = pod.getSpec().getNodeName();
    return bound != null ? bound : annotationsOf(pod.getMetadata()).get("hami.io/vgpu-node");
  }

  static boolean isDecided(V1Pod pod) {
    return nodeOf(pod) != null || refusalOf(pod) != null;
  }

  /** Resources of devices have a domain, those of Kubernetes itself have none. */
  static boolean asksForDevices(V1Pod pod) {
    List<V1Container> containers = new ArrayList<>(pod.getSpec().getContainers());
    containers.addAll(Objects.requireNonNullElse(pod.getSpec().getInitContainers(), List.of()));
    return containers.stream()
        .map(V1Container::getResources)
        .filter(resources -> resources != null && resources.getLimits() != null)
        .flatMap(resources -> resources.getLimits().keySet().stream())
        .anyMatch(name -> name.contains("/"));
  }

  static Map<String, String> annotationsOf(V1ObjectMeta metadata) {
    return Objects.requireNonNullElse(metadata.getAnnotations(), Map.of());
  }

  private static List<String> silence(String vendor, Handshake said, Instant now) {
    if (said.state().equals("Deleted")) {
      return List.of("the scheduler has given the %s device plugin up; %s".formatted(vendor, READ_LOGS));
    }
    if (said.at() == null) {
      return List.of(
          "the handshake of the %s device plugin has no time that can be read; %s".formatted(vendor, READ_LOGS));
    }
    Duration age = Duration.between(said.at(), now);
    if (age.compareTo(FRESH) <= 0) {
      return List.of();
    }
    String what = said.state().equals("Requesting") ? "was asked for a report" : "last reported";
    return List.of(
        "the %s device plugin %s %d minutes ago, expected within 5 minutes; %s"
            .formatted(vendor, what, age.toMinutes(), READ_LOGS));
  }

  private static String whyPending(V1Pod pod) {
    String reason = refusalOf(pod);
    if (reason != null) {
      return "%s is pending: %s; ask for less, or see what is free on the nodes with the label %s"
          .formatted(nameOf(pod), reason, HAMiClient.GPU_NODES);
    }
    return nameOf(pod)
        + " is pending: no scheduler has decided about it yet; if that lasts, read what it does:"
        + " kubectl logs -n kube-system deployment/hami-scheduler";
  }

  /** Why the scheduler found no node, without what it adds about preemption; null while it has not said anything. */
  private static String refusalOf(V1Pod pod) {
    for (V1PodCondition said : Objects.requireNonNullElse(pod.getStatus().getConditions(), List.<V1PodCondition>of())) {
      if (said.getType().equals("PodScheduled") && said.getStatus().equals("False") && said.getMessage() != null) {
        return said.getMessage().split("\\. ")[0].replaceFirst("\\.$", "");
      }
    }
    return null;
  }

  private static String nameOf(V1Pod pod) {
    return pod.getMetadata().getNamespace() + "/" + pod.getMetadata().getName();
  }

  private static Instant unixTime(String text) {
    try {
      return text == null ? null : Instant.ofEpochSecond(Long.parseLong(text));
    } catch (NumberFormatException | DateTimeException unknown) {
      return null;
    }
  }
}

/** Asks the API server, again where that can help, and tells in a sentence why there is no answer. */
final class Requests {
  private static final List<Duration> PAUSES =
      List.of(Duration.ofMillis(200), Duration.ofMillis(500), Duration.ofSeconds(1), Duration.ofSeconds(2));
  private static final Duration LONGEST = Duration.ofSeconds(10);

  private final String server;

  Requests(String server) {
    this.server = server;
  }

  interface Request<T> {
    T send() throws ApiException;
  }

  static ApiClient findCluster() {
    String file = Objects.requireNonNullElse(System.getenv("KUBECONFIG"), "~/.kube/config");
    try {
      ApiClient client = ClientBuilder.standard().build();
      if (!client.getBasePath().startsWith("http://localhost:8080")) {
        return client;
      }
    } catch (IOException | RuntimeException broken) {
      throw noCluster(file, Objects.requireNonNullElse(broken.getMessage(), broken.getClass().getSimpleName()));
    }
    throw noCluster(file, "it is not there");
  }

  <T> T call(String doing, Request<T> request) {
    for (Duration pause : PAUSES) {
      try {
        return request.send();
      } catch (ApiException failure) {
        if (!mayPass(failure)) {
          throw explain(doing, failure);
        }
        pause(longer(pause, askedPause(failure)));
      }
    }
    try {
      return request.send();
    } catch (ApiException failure) {
      throw explain(doing, failure);
    }
  }

  static void pause(Duration pause) {
    try {
      Thread.sleep(pause.toMillis());
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new HAMiException("waiting for the cluster was interrupted");
    }
  }

  /** A conflict passes, for instance of two pods counted against one quota; a name that is taken stays so. */
  static boolean mayPass(ApiException failure) {
    if (failure.getCode() == 409) {
      return said(failure, "reason").equals("Conflict");
    }
    return failure.getCode() == 0 || failure.getCode() == 429 || failure.getCode() >= 500;
  }

  HAMiException explain(String doing, ApiException failure) {
    String said = said(failure, "message");
    String why =
        switch (failure.getCode()) {
          case 0 ->
              "%s cannot be reached (%s); see that the cluster runs and that the kubeconfig is the right one: kubectl"
                  .formatted(server, causeOf(failure))
                  + " cluster-info";
          case 401 ->
              "%s does not accept our credentials (401 %s); test them: kubectl cluster-info".formatted(server, said);
          case 403 ->
              said + (said.contains("User \"") ? "; give that user or service account the right by RBAC" : " (403)");
          default -> "%s (%d)".formatted(said, failure.getCode());
        };
    return new HAMiException(doing + " failed: " + why);
  }

  private static HAMiException noCluster(String file, String why) {
    return new HAMiException(
        "%s is no kubeconfig that can be used (%s); test it: kubectl cluster-info, or name another in KUBECONFIG"
            .formatted(file, why.lines().findFirst().orElse("")));
  }

  private static String causeOf(ApiException failure) {
    Throwable cause = failure.getCause() != null ? failure.getCause() : failure;
    return Objects.requireNonNullElse(cause.getMessage(), cause.getClass().getSimpleName()).lines().findFirst().orElse("");
  }

  private static Duration askedPause(ApiException failure) {
    Map<String, List<String>> headers = Objects.requireNonNullElse(failure.getResponseHeaders(), Map.of());
    return headers.entrySet().stream()
        .filter(header -> header.getKey().equalsIgnoreCase("Retry-After"))
        .map(header -> header.getValue().get(0))
        .filter(text -> text.matches("\\d{1,6}"))
        .map(text -> Duration.ofSeconds(Long.parseLong(text)))
        .map(asked -> asked.compareTo(LONGEST) > 0 ? LONGEST : asked)
        .findFirst()
        .orElse(Duration.ZERO);
  }

  private static Duration longer(Duration one, Duration other) {
    return one.compareTo(other) < 0 ? other : one;
  }

  /** A field of the Status in which the API server says what is wrong. */
  private static String said(ApiException failure, String field) {
    try {
      JsonElement status = JsonParser.parseString(Objects.requireNonNullElse(failure.getResponseBody(), ""));
      return status.getAsJsonObject().get(field).getAsString();
    } catch (JsonParseException | IllegalStateException | NullPointerException noStatus) {
      return Objects.requireNonNullElse(failure.getMessage(), "").lines().findFirst().orElse("");
    }
  }
}

/** What `mvn exec:java` shows. */
final class Tour {
  private final HAMiClient hami;

  Tour(HAMiClient hami) {
    this.hami = hami;
  }

  void show() {
    System.out.println("Nodes with the label " + HAMiClient.GPU_NODES);
    List<NodeInfo> nodes = hami.listGPUNodes(HAMiClient.GPU_NODES);
    print(nodes.stream().map(Tour::tell).toList());
    if (!nodes.isEmpty()) {
      placeAPod();
    }
    System.out.println("\nPods that ask for devices");
    print(hami.listGPUPods().stream().map(Tour::tell).toList());
    System.out.println("\nWhat looks wrong");
    print(hami.findProblems(HAMiClient.GPU_NODES));
  }

  private void placeAPod() {
    String name = "hami-tour-" + UUID.randomUUID().toString().substring(0, 6);
    System.out.println("\nA pod of ours asks for 1000 MB and 10 % of one card, and is deleted again: default/" + name);
    hami.createGPUPod(name, "default", "busybox:latest", 1, 1000, 10, List.of("sleep", "60"));
    try {
      SchedulingInfo info = hami.getPodSchedulingInfo(name, "default");
      print(List.of(info.problem != null ? info.problem : tell(info)));
    } finally {
      hami.deletePod(name, "default");
    }
  }

  private static String tell(NodeInfo node) {
    Map<String, Integer> models = new TreeMap<>();
    node.devices.forEach(device -> models.merge(device.type(), 1, Integer::sum));
    List<String> counts = models.entrySet().stream().map(one -> one.getValue() + " x " + one.getKey()).toList();
    long ill = node.devices.stream().filter(device -> !device.healthy()).count();
    long memoryMB = node.devices.stream().mapToLong(Device::memoryMB).sum();
    return "%s  %s  %d MB  %s"
        .formatted(node.name, String.join(", ", counts), memoryMB, ill == 0 ? "all healthy" : ill + " ill");
  }

  private static String tell(SchedulingInfo pod) {
    List<String> parts =
        pod.allocatedDevices.stream()
            .map(part -> "%d MB, %d %% of %s".formatted(part.memoryMB(), part.cores(), part.uuid()))
            .toList();
    String node = Objects.requireNonNullElse(pod.node, "no node yet");
    return "%s/%s  %s  %s  %s"
        .formatted(pod.namespace, pod.name, pod.phase, node, String.join("; ", parts)).stripTrailing();
  }

  private static void print(List<String> lines) {
    (lines.isEmpty() ? List.of("nothing") : lines).forEach(line -> System.out.println("  " + line));
  }
}

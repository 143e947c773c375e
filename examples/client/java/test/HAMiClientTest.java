import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.models.V1Node;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What needs no cluster: annotations in every form, and the sentences of refusals. */
class HAMiClientTest {
  private static final Instant NOW = Instant.parse("2026-08-21T10:00:05Z");
  private static final String REGISTER = "hami.io/node-nvidia-register";
  private static final String CARD = "GPU-a,10,40960,100,NVIDIA A100,1,true:";

  @Test
  void aRegisterIsReadInItsThreeForms() {
    Device seven = Annotations.parseRegister(CARD, "nvidia").get(0);
    Device nine = Annotations.parseRegister("GPU-a,10,40960,100,NVIDIA A100,1,true,0,hami-core:", "nvidia").get(0);
    String json =
        """
        [{"id":"GPU-a","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA A100","numa":1,"health":true}]""";
    assertEquals(new Device("nvidia", "GPU-a", 0, "NVIDIA A100", 40960, 100, 10, 1, "hami-core", true), seven);
    assertEquals(seven, nine);
    assertEquals(seven, Annotations.parseRegister(json, "nvidia").get(0));
  }

  @Test
  void aJsonCardWithoutHealthIsIllAndAnEmptyRegisterHasNoCards() {
    assertFalse(Annotations.parseRegister("[{\"id\":\"GPU-a\"}]", "nvidia").get(0).healthy());
    assertTrue(Annotations.parseRegister("null", "nvidia").isEmpty());
    assertTrue(Annotations.parseRegister("", "nvidia").isEmpty());
  }

  @Test
  void aRegisterThatCannotBeReadIsToldInASentence() {
    for (String text : List.of("GPU-a,10:", "GPU-a,x,1,1,A,0,true:", "[{", "[1]", ",1,1,1,A,0,true:")) {
      assertThrows(HAMiException.class, () -> Annotations.parseRegister(text, "nvidia"), text);
    }
  }

  @Test
  void everySpellingOfAHandshakeMeansTheSame() {
    for (String text :
        List.of(
            "Reported 2026-08-21 10:00:05",
            "Reported 2026-08-21 12:00:05.43 +0200 CEST m=+11.2",
            "Reported_2026.08.21 10:00:05",
            "2026-08-21T10:00:05Z")) {
      assertEquals(new Handshake("Reported", NOW), Annotations.parseHandshake(text));
    }
    assertEquals(new Handshake("Requesting", null), Annotations.parseHandshake("Requesting_2026-13-41 10:00:05"));
  }

  @Test
  void allocationsAreReadByVendorAndOnlyWithoutThemFromTheFlatList() {
    Map<String, String> both =
        Map.of(
            "hami.io/vgpu-devices-to-allocate", ";",
            "hami.io/vgpu-devices-allocated", ",,0,0:;GPU-a[1g.5gb-0],NVIDIA,4864,14:;",
            "hami.io/devices-to-allocate", "GPU-flat,NVIDIA,1,1:",
            "hami.io/device-allocated", "nvidia-gpu-0,nvidia-gpu-1");
    assertEquals(List.of(new AllocatedDevice(1, "GPU-a", "NVIDIA", 4864, 14)), Annotations.readAllocations(both));
    Map<String, String> flat = Map.of("hami.io/devices-to-allocate", "GPU-flat,NVIDIA,1,1:");
    assertEquals("GPU-flat", Annotations.readAllocations(flat).get(0).uuid());
  }

  @Test
  void aNodeThatReportsIsWellAndOneThatDoesNotIsTold() {
    assertEquals(List.of(), problemsOf(Map.of(REGISTER, CARD, "hami.io/node-handshake", "Reported 2026-08-21 09:55:05")));
    assertTrue(problemsOf(Map.of()).get(0).startsWith("gpu-07: no device is registered"));
    String silent = problemsOf(Map.of(REGISTER, CARD, "hami.io/node-handshake", "Reported 2026-08-21 09:00:05")).get(0);
    assertTrue(silent.startsWith("gpu-07: the nvidia device plugin last reported 60 minutes ago"), silent);
  }

  private static List<String> problemsOf(Map<String, String> annotations) {
    V1Node node = new V1Node().metadata(new V1ObjectMeta().name("gpu-07").annotations(annotations));
    return Reading.node(node, NOW).problems;
  }

  @Test
  void onlyWhatMayPassIsTriedAgain() {
    assertTrue(Requests.mayPass(refusal(409, "{\"reason\":\"Conflict\"}")));
    assertFalse(Requests.mayPass(refusal(409, "{\"reason\":\"AlreadyExists\"}")));
    assertTrue(Requests.mayPass(refusal(429, "")));
    assertTrue(Requests.mayPass(refusal(503, "")));
    assertFalse(Requests.mayPass(refusal(404, "")));
  }

  @Test
  void aRefusalIsOneSentence() {
    Requests requests = new Requests("https://cluster");
    assertEquals(
        "listing failed: https://cluster does not accept our credentials (401 Unauthorized); test them: kubectl"
            + " cluster-info",
        requests.explain("listing", refusal(401, "{\"message\":\"Unauthorized\"}")).getMessage());
    assertEquals(
        "listing failed: pods \"a\" not found (404)",
        requests.explain("listing", refusal(404, "{\"message\":\"pods \\\"a\\\" not found\"}")).getMessage());
    assertNull(requests.explain("listing", refusal(500, "")).getCause());
  }

  private static ApiException refusal(int code, String body) {
    return new ApiException(code, "refused", Map.of(), body);
  }
}

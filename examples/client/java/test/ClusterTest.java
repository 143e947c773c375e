import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The client on the cluster that KUBECONFIG names: it must have a scheduler of ours and a node with cards. */
class ClusterTest {
  private static final boolean HAS_CLUSTER = System.getenv("KUBECONFIG") != null;

  private final String name = "java-client-" + UUID.randomUUID().toString().substring(0, 6);
  private HAMiClient hami;
  private boolean hasPod;

  @BeforeAll
  static void tellWhatIsSkipped() {
    if (!HAS_CLUSTER) {
      System.out.println("KUBECONFIG names no cluster: the tests that need one are skipped");
    }
  }

  @BeforeEach
  void connect() {
    assumeTrue(HAS_CLUSTER);
    hami = new HAMiClient();
  }

  @AfterEach
  void deleteThePod() {
    if (hasPod) {
      hami.deletePod(name, "default");
    }
  }

  private PodInfo create(Integer memoryMB) {
    PodInfo pod = hami.createGPUPod(name, "default", "busybox:latest", 1, memoryMB, 10, List.of("sleep", "60"));
    hasPod = true;
    return pod;
  }

  @Test
  void nodesAreListedWithTheirCards() {
    List<NodeInfo> nodes = hami.listGPUNodes("gpu=on");
    assertFalse(nodes.isEmpty());
    assertTrue(nodes.stream().allMatch(node -> node.devices.stream().anyMatch(Device::healthy)));
    assertTrue(hami.listGPUNodes("gpu=nowhere").isEmpty());
  }

  @Test
  void aPodGetsAPartOfACardOfItsNode() {
    assertEquals(name, create(1000).name);
    SchedulingInfo info = hami.waitUntilScheduled(name, "default", Duration.ofSeconds(60));
    assertNotNull(info.scheduledAt);
    assertNull(info.problem);
    AllocatedDevice part = info.allocatedDevices.get(0);
    assertEquals(List.of(1000, 10), List.of(part.memoryMB(), part.cores()));
    NodeInfo node = hami.listGPUNodes("gpu=on").stream().filter(one -> one.name.equals(info.node)).findFirst().get();
    assertTrue(node.devices.stream().anyMatch(device -> device.uuid().equals(part.uuid())));
  }

  @Test
  void aPodThatDoesNotFitTellsWhy() {
    create(900_000_000);
    SchedulingInfo info = hami.getPodSchedulingInfo(name, "default");
    assertNull(info.node);
    assertTrue(info.problem.startsWith("default/" + name + " is pending: "), info.problem);
    assertTrue(hami.findProblems("gpu=on").contains(info.problem));
  }

  @Test
  void aNameThatIsTakenIsTold() {
    create(1000);
    HAMiException taken = assertThrows(HAMiException.class, () -> create(1000));
    assertEquals("creating pod default/%s failed: pods \"%1$s\" already exists (409)".formatted(name), taken.getMessage());
  }

  @Test
  void aPodThatIsNotThereIsTold() {
    HAMiException missing = assertThrows(HAMiException.class, () -> hami.getPodSchedulingInfo("nobody", "default"));
    assertEquals("reading pod default/nobody failed: pods \"nobody\" not found (404)", missing.getMessage());
  }
}

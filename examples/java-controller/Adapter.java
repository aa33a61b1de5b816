import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/** Answers what `reassure` asks, and keeps the cluster of one example: brokers and controllers. */
public final class Adapter {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final int FIRST_CONTROLLER = 101;

  private final List<Controller> controllers = new ArrayList<>();
  private Map<Integer, Broker> brokers = new ConcurrentSkipListMap<>();
  private String address;
  private int next = FIRST_CONTROLLER;

  private static JsonNode describe(JsonNode by) {
    ObjectNode about = JSON.objectNode().put("name", "controller in Java").put("version", "0.1");
    about.put("language", "Java").put("profile", by.get("profile").textValue());
    about.set("readings", by.get("readings"));
    about.putArray("capabilities").add("isr").add("brokers").add("kill");
    return about.put("adapter_version", 2);
  }

  private Controller acting() {
    return controllers.stream().filter(Controller::acts).findFirst().orElse(null);
  }

  private void elect() throws Exception {
    controllers.add(new Controller(address, next++, brokers));
  }

  /** Has every controller look again until one acts and has nothing left to do. */
  private boolean settle(double seconds) throws Exception {
    long until = System.nanoTime() + (long) (seconds * 1e9);
    do {
      for (Controller each : controllers) each.work();
      if (acting() != null) return true;
      Thread.sleep(20);
    } while (System.nanoTime() < until);
    return false;
  }

  private void stop() throws Exception {
    for (Controller each : controllers) each.kill();
    for (Broker each : brokers.values()) each.stop();
    controllers.clear();
    brokers = new ConcurrentSkipListMap<>();
  }

  private boolean changeIsr(JsonNode given) throws Exception {
    Tree.Key key = new Tree.Key(given.get("topic").textValue(), given.get("partition").intValue());
    for (Broker each : brokers.values()) {
      if (!each.leads(key)) continue;
      return each.change(given.get("broker").intValue(), key, given.get("joins").booleanValue());
    }
    return false;
  }

  private boolean killController() throws Exception {
    Controller killed = acting();
    if (killed == null) return false;
    controllers.remove(killed);
    killed.kill();
    return true;
  }

  private JsonNode answer(String call, JsonNode given) throws Exception {
    switch (call) {
      case "describe":
        return describe(given);
      case "start":
        address = given.get("hosts").textValue() + given.get("chroot").textValue();
        elect();
        for (JsonNode id : given.get("brokers")) startBroker(id.intValue());
        return JSON.nullNode();
      case "settle":
        return JSON.booleanNode(settle(given.get("timeout_s").doubleValue()));
      case "stop", "close":
        stop();
        return JSON.nullNode();
      case "start_broker":
        startBroker(given.get("broker").intValue());
        return reply(true);
      case "stop_broker":
        brokers.remove(given.get("broker").intValue()).stop();
        return reply(true);
      case "change_isr":
        return reply(changeIsr(given));
      case "kill_controller":
        return reply(killController());
      case "elect":
        elect();
        return reply(true);
      default:
        throw new UnsupportedOperationException(call + " is not written");
    }
  }

  private void startBroker(int id) throws Exception {
    brokers.put(id, new Broker(address, id));
  }

  private static JsonNode reply(boolean done) {
    return JSON.textNode(done ? "ok" : "refused");
  }

  public static void main(String[] flags) throws Exception {
    // Answers alone go to standard output; what libraries log there goes to standard error.
    PrintStream answers = System.out;
    System.setOut(System.err);
    Adapter adapter = new Adapter();
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode asked = Json.parse(line);
      ObjectNode said = JSON.objectNode();
      said.set("id", asked.get("id"));
      try {
        said.set("answer", adapter.answer(asked.get("call").textValue(), asked.get("arguments")));
      } catch (Exception error) {
        error.printStackTrace();
        said.put("error", error.toString());
      }
      answers.println(said);
      answers.flush();
    }
    adapter.stop();
    System.exit(0);
  }
}

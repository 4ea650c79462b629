using Azure.Messaging.ServiceBus;
using Azure.Messaging.ServiceBus.Administration;

namespace Judge;

public static class TopicChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("every subscription gets its copy, by its rules", () => Copies(bench));
        await report.Check("rules are listed, created and deleted over AMQP", () => RuleManager(bench));
        await report.Check("a subscription's dead letters are its own", () => Letters(bench));
    }

    private static async Task<List<string>> Drain(Bench bench, string subscription)
    {
        await using var receiver = bench.Client.CreateReceiver("topic", subscription, new() { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete });
        var bodies = new List<string>();
        while (await receiver.ReceiveMessageAsync(Bench.Moment) is { } message) bodies.Add(message.Body.ToString());
        return bodies;
    }

    private static ServiceBusMessage Colored(string body, string color, int size)
    {
        var message = Bench.Message(body);
        message.Subject = "paint";
        message.ApplicationProperties["color"] = color;
        message.ApplicationProperties["size"] = size;
        return message;
    }

    private static async Task Copies(Bench bench)
    {
        await bench.Send("topic", Colored("1", "blue", 1), Colored("2", "red", 5), Colored("3", "blue", 9));
        Expect.Sequence(["1", "2", "3"], await Drain(bench, "all"), "all");
        Expect.Sequence(["1", "3"], await Drain(bench, "blue"), "blue");
        Expect.Sequence(["2"], await Drain(bench, "correlated"), "correlated");
        Expect.Sequence(["1", "2", "3"], await Drain(bench, "managed"), "managed");
    }

    private static async Task RuleManager(Bench bench)
    {
        await using var rules = bench.Client.CreateRuleManager("topic", "managed");
        Expect.Sequence(["$Default"], await Names(rules), "names at first");
        await rules.DeleteRuleAsync("$Default");
        await rules.CreateRuleAsync("sql", new SqlRuleFilter("size > 4 AND color LIKE 'r%'"));
        await rules.CreateRuleAsync("correlation", new CorrelationRuleFilter("no-such") { ApplicationProperties = { ["size"] = 9, ["ok"] = true } });
        await Expect.Throws<ServiceBusException>(() => rules.CreateRuleAsync("sql", new TrueRuleFilter()), "the same name again");
        await Expect.Throws<ServiceBusException>(() => rules.DeleteRuleAsync("nowhere"), "no such rule");
        await foreach (var rule in rules.GetRulesAsync())
        {
            switch (rule.Filter)
            {
                case SqlRuleFilter sql: Expect.Equal("size > 4 AND color LIKE 'r%'", sql.SqlExpression, "expression"); break;
                case CorrelationRuleFilter correlation:
                    Expect.Equal("no-such", correlation.CorrelationId, "correlation id");
                    Expect.Equal(9, (int)correlation.ApplicationProperties["size"], "size");
                    Expect.Equal(true, (bool)correlation.ApplicationProperties["ok"], "ok");
                    break;
                default: throw new NotAsExpected($"a filter of another kind: {rule.Filter}");
            }
        }
        Expect.Sequence(["correlation", "sql"], await Names(rules), "names");
        await bench.Send("topic", Colored("big", "red", 5), Colored("small", "red", 1));
        Expect.Sequence(["big"], await Drain(bench, "managed"), "managed");
        foreach (var other in new[] { "all", "blue", "correlated" }) await Drain(bench, other);
    }

    private static async Task<IEnumerable<string>> Names(ServiceBusRuleManager rules)
    {
        var names = new List<string>();
        await foreach (var rule in rules.GetRulesAsync()) names.Add(rule.Name);
        return names.Order();
    }

    private static async Task Letters(Bench bench)
    {
        await bench.Send("topic", Colored("x", "green", 1));
        await using var receiver = bench.Client.CreateReceiver("topic", "all");
        await receiver.DeadLetterMessageAsync(await Bench.Take(receiver), "reason");
        await using var letters = bench.Client.CreateReceiver("topic", "all", new() { SubQueue = SubQueue.DeadLetter });
        var letter = await Bench.Take(letters);
        Expect.Equal("reason", letter.DeadLetterReason, "reason");
        await letters.CompleteMessageAsync(letter);
    }
}

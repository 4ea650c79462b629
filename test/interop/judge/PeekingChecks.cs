using Azure.Messaging.ServiceBus;

namespace Judge;

public static class PeekingChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("peeking pages through everything and changes nothing", () => Pages(bench));
        await report.Check("peeking shows locked and deferred messages", () => States(bench));
        await report.Check("peeking shows the dead-letter queue", () => Letters(bench));
    }

    private static async Task Pages(Bench bench)
    {
        await bench.Send("peeking", [.. Enumerable.Range(0, 300).Select(i => Bench.Message($"{i}"))]);
        await using var receiver = bench.Client.CreateReceiver("peeking");
        var seen = new List<ServiceBusReceivedMessage>();
        for (long from = 0; ;)
        {
            var page = await receiver.PeekMessagesAsync(1000, from);
            if (page.Count == 0) break;
            seen.AddRange(page);
            from = page[^1].SequenceNumber + 1;
        }
        Expect.Sequence(Enumerable.Range(0, 300).Select(i => $"{i}"), seen.Select(message => message.Body.ToString()), "bodies");
        var messages = await Bench.Take(receiver, 300);
        Expect.True(messages.All(message => message.DeliveryCount == 1), "first deliveries");
        await Task.WhenAll(messages.Select(message => receiver.CompleteMessageAsync(message)));
    }

    private static async Task States(Bench bench)
    {
        await bench.Send("peeking", Bench.Message("locked"), Bench.Message("deferred"), Bench.Message("active"));
        await using var receiver = bench.Client.CreateReceiver("peeking");
        var messages = await Bench.Take(receiver, 2);
        await receiver.DeferMessageAsync(messages[1]);
        var peeked = await receiver.PeekMessagesAsync(10, messages[0].SequenceNumber);
        Expect.Sequence(["locked", "deferred", "active"], peeked.Select(message => message.Body.ToString()), "bodies");
        Expect.Sequence(
            [ServiceBusMessageState.Active, ServiceBusMessageState.Deferred, ServiceBusMessageState.Active],
            peeked.Select(message => message.State), "states");
        await receiver.CompleteMessageAsync(messages[0]);
        await receiver.CompleteMessageAsync(await receiver.ReceiveDeferredMessageAsync(messages[1].SequenceNumber));
        await receiver.CompleteMessageAsync(await Bench.Take(receiver));
    }

    private static async Task Letters(Bench bench)
    {
        await bench.Send("peeking", Bench.Message("x"));
        await using var receiver = bench.Client.CreateReceiver("peeking");
        await receiver.DeadLetterMessageAsync(await Bench.Take(receiver), "reason");
        await using var letters = bench.Client.CreateReceiver("peeking", new ServiceBusReceiverOptions { SubQueue = SubQueue.DeadLetter });
        Expect.Equal("reason", (await letters.PeekMessageAsync(0)).DeadLetterReason, "reason");
        await letters.CompleteMessageAsync(await Bench.Take(letters));
    }
}

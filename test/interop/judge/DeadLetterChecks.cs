using Azure.Messaging.ServiceBus;

namespace Judge;

public static class DeadLetterChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("a dead letter has its reason, description and properties, and its number", () => WithReason(bench));
        await report.Check("too many deliveries lead to the dead-letter queue", () => TooManyDeliveries(bench));
        await report.Check("expiry leads to the dead-letter queue", () => Expiry(bench));
        await report.Check("a dead letter is deferred, taken by number, abandoned and completed", () => DeferredLetter(bench));
        await report.Check("a dead letter's delivery count stays", () => FrozenCount(bench));
        await report.Check("a dead letter cannot be dead-lettered", () => NoFurther(bench));
        await report.Check("a forwarded dead letter tells where it came from", () => Forwarded(bench));
    }

    private static ServiceBusReceiver Letters(Bench bench, string queue = "dying") =>
        bench.Client.CreateReceiver(queue, new ServiceBusReceiverOptions { SubQueue = SubQueue.DeadLetter });

    private static async Task<ServiceBusReceivedMessage> Kill(Bench bench, string body = "x")
    {
        await bench.Send("dying", Bench.Message(body));
        await using var receiver = bench.Client.CreateReceiver("dying");
        var message = await Bench.Take(receiver);
        await receiver.DeadLetterMessageAsync(message, "reason", "description");
        return message;
    }

    private static async Task WithReason(Bench bench)
    {
        var sent = Bench.Message("x");
        EveryType.AddTo(sent.ApplicationProperties);
        await bench.Send("dying", sent);
        await using var receiver = bench.Client.CreateReceiver("dying");
        var message = await Bench.Take(receiver);
        var added = new Dictionary<string, object> { ["attempt"] = (byte)3 };
        await receiver.DeadLetterMessageAsync(message, added, "Unprocessable", "no such customer");
        await using var letters = Letters(bench);
        var letter = await Bench.Take(letters);
        Expect.Equal("Unprocessable", letter.DeadLetterReason, "reason");
        Expect.Equal("no such customer", letter.DeadLetterErrorDescription, "description");
        Expect.Equal((byte)3, (byte)letter.ApplicationProperties["attempt"], "attempt");
        foreach (var name in EveryType.Values.Keys) EveryType.Cast(name, letter.ApplicationProperties.GetValueOrDefault(name));
        Expect.Equal(message.SequenceNumber, letter.SequenceNumber, "sequence number");
        Expect.Equal(message.MessageId, letter.MessageId, "message id");
        Expect.Equal(message.EnqueuedTime, letter.EnqueuedTime, "enqueued time");
        await letters.CompleteMessageAsync(letter);
        Expect.Equal(null, await letters.PeekMessageAsync(0), "what is left");
    }

    private static async Task TooManyDeliveries(Bench bench)
    {
        await bench.Send("dying", Bench.Message("x"));
        await using var receiver = bench.Client.CreateReceiver("dying");
        for (var i = 0; i < 3; i++) await receiver.AbandonMessageAsync(await Bench.Take(receiver));
        await using var letters = Letters(bench);
        var letter = await Bench.Take(letters);
        Expect.Equal("MaxDeliveryCountExceeded", letter.DeadLetterReason, "reason");
        Expect.Equal("Message could not be consumed after 3 delivery attempts.", letter.DeadLetterErrorDescription, "description");
        await letters.CompleteMessageAsync(letter);
    }

    private static async Task Expiry(Bench bench)
    {
        var sent = Bench.Message("x");
        sent.TimeToLive = TimeSpan.FromMilliseconds(200);
        await bench.Send("dying", sent);
        await using var letters = Letters(bench);
        var letter = await Bench.Take(letters);
        Expect.Equal("TTLExpiredException", letter.DeadLetterReason, "reason");
        await letters.CompleteMessageAsync(letter);
    }

    private static async Task DeferredLetter(Bench bench)
    {
        await Kill(bench);
        await using var letters = Letters(bench);
        var letter = await Bench.Take(letters);
        await letters.DeferMessageAsync(letter);
        Expect.Equal(null, await letters.ReceiveMessageAsync(Bench.Moment), "nothing is delivered");
        var taken = await letters.ReceiveDeferredMessageAsync(letter.SequenceNumber);
        await letters.AbandonMessageAsync(taken);
        Expect.Equal(ServiceBusMessageState.Deferred, (await letters.PeekMessageAsync(0)).State, "state");
        await using var others = Letters(bench);
        taken = await others.ReceiveDeferredMessageAsync(letter.SequenceNumber);
        await others.CompleteMessageAsync(taken);
        Expect.Equal(null, await letters.PeekMessageAsync(0), "what is left");
    }

    private static async Task FrozenCount(Bench bench)
    {
        await Kill(bench);
        await using var letters = Letters(bench);
        var first = await Bench.Take(letters);
        for (var i = 0; i < 5; i++)
        {
            await letters.AbandonMessageAsync(first);
            var next = await Bench.Take(letters);
            Expect.Equal(first.DeliveryCount, next.DeliveryCount, "delivery count");
            first = next;
        }
        await letters.CompleteMessageAsync(first);
    }

    private static async Task NoFurther(Bench bench)
    {
        await Kill(bench);
        await using var letters = Letters(bench);
        var letter = await Bench.Take(letters);
        await Expect.Throws<Exception>(() => letters.DeadLetterMessageAsync(letter, "again"), "dead-lettering");
        await letters.CompleteMessageAsync(letter);
    }

    private static async Task Forwarded(Bench bench)
    {
        await bench.Send("forwarding", Bench.Message("x"));
        await using (var receiver = bench.Client.CreateReceiver("forwarding"))
        {
            await receiver.DeadLetterMessageAsync(await Bench.Take(receiver), "reason");
        }
        await using var target = bench.Client.CreateReceiver("forwarded");
        var letter = await Bench.Take(target);
        Expect.Equal("forwarding", letter.DeadLetterSource, "source");
        Expect.Equal("reason", letter.DeadLetterReason, "reason");
        await target.CompleteMessageAsync(letter);
    }
}

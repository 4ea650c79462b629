using Azure.Core.Amqp;
using Azure.Messaging.ServiceBus;

namespace Judge;

public static class SendingChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("every property type comes back as it was sent", () => EveryPropertyType(bench));
        await report.Check("every system property comes back as it was sent", () => SystemProperties(bench));
        await report.Check("bodies come back in the kind they were sent: data, value, sequence", () => Bodies(bench));
        await report.Check("a batch is stored in order, as one", () => Batch(bench));
        await report.Check("a message of several frames arrives whole", () => LargeMessage(bench));
        await report.Check("a message over the limit is refused", () => TooLarge(bench));
        await report.Check("a queue that is not there is said to be not there", () => NoSuchQueue(bench));
        await report.Check("a scheduled message comes at its time, a cancelled one never", () => Scheduled(bench));
        await report.Check("partitioned: numbers beyond a double, batches by key, deferred by number", () => Partitioned(bench));
        await report.Check("a duplicate inside the window is accepted and dropped", () => Duplicate(bench));
    }

    private static async Task EveryPropertyType(Bench bench)
    {
        var message = Bench.Message("typed");
        EveryType.AddTo(message.ApplicationProperties);
        await bench.Send("sending", message);
        await using var receiver = bench.Client.CreateReceiver("sending");
        var received = await Bench.Take(receiver);
        foreach (var name in EveryType.Values.Keys) EveryType.Cast(name, received.ApplicationProperties.GetValueOrDefault(name));
        Expect.Equal(EveryType.Values.Count, received.ApplicationProperties.Count, "number of properties");
        await receiver.CompleteMessageAsync(received);
    }

    private static async Task SystemProperties(Bench bench)
    {
        var before = DateTimeOffset.UtcNow.AddSeconds(-5);
        await bench.Send("sending", new ServiceBusMessage("body")
        {
            MessageId = "id",
            CorrelationId = "correlation",
            Subject = "subject",
            ContentType = "text/plain",
            To = "to",
            ReplyTo = "reply",
            ReplyToSessionId = "reply-session",
            SessionId = "session",
            TimeToLive = TimeSpan.FromMinutes(5),
        });
        await using var receiver = bench.Client.CreateReceiver("sending");
        var received = await Bench.Take(receiver);
        Expect.Equal("id", received.MessageId, "message id");
        Expect.Equal("correlation", received.CorrelationId, "correlation id");
        Expect.Equal("subject", received.Subject, "subject");
        Expect.Equal("text/plain", received.ContentType, "content type");
        Expect.Equal("to", received.To, "to");
        Expect.Equal("reply", received.ReplyTo, "reply to");
        Expect.Equal("reply-session", received.ReplyToSessionId, "reply to session id");
        Expect.Equal("session", received.SessionId, "session id");
        Expect.Equal(TimeSpan.FromMinutes(5), received.TimeToLive, "time to live");
        Expect.Equal(1, received.DeliveryCount, "delivery count");
        Expect.True(received.SequenceNumber > 0, "sequence number");
        Expect.Equal(received.SequenceNumber, received.EnqueuedSequenceNumber, "enqueued sequence number");
        Expect.True(received.EnqueuedTime > before && received.EnqueuedTime < DateTimeOffset.UtcNow.AddSeconds(5), "enqueued time");
        Expect.True(received.LockedUntil > DateTimeOffset.UtcNow, "locked until");
        Expect.Equal(ServiceBusMessageState.Active, received.State, "state");
        await receiver.CompleteMessageAsync(received);
    }

    private static async Task Bodies(Bench bench)
    {
        var value = new ServiceBusMessage(new AmqpAnnotatedMessage(AmqpMessageBody.FromValue(12L)));
        var sequence = new ServiceBusMessage(new AmqpAnnotatedMessage(AmqpMessageBody.FromSequence([[1, "two"]])));
        await using var sender = bench.Client.CreateSender("sending");
        foreach (var message in new[] { Bench.Message("data"), value, sequence }) await sender.SendMessageAsync(message);
        await using var receiver = bench.Client.CreateReceiver("sending", new ServiceBusReceiverOptions { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete });
        var bodies = (await Bench.Take(receiver, 3)).Select(message => message.GetRawAmqpMessage().Body).ToList();
        Expect.Sequence([AmqpMessageBodyType.Data, AmqpMessageBodyType.Value, AmqpMessageBodyType.Sequence], bodies.Select(body => body.BodyType), "kinds");
        Expect.True(bodies[1].TryGetValue(out var number) && number is 12L, "value");
        Expect.True(bodies[2].TryGetSequence(out var lists), "sequence");
        Expect.Sequence([1, "two"], lists!.Single(), "items of the sequence");
    }

    private static async Task Batch(Bench bench)
    {
        await using var sender = bench.Client.CreateSender("sending");
        using var batch = await sender.CreateMessageBatchAsync();
        for (var i = 0; i < 100; i++) Expect.True(batch.TryAddMessage(Bench.Message($"{i}")), "fits");
        await sender.SendMessagesAsync(batch);
        await using var receiver = bench.Client.CreateReceiver("sending", new ServiceBusReceiverOptions { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete });
        var bodies = (await Bench.Take(receiver, 100)).Select(message => message.Body.ToString());
        Expect.Sequence(Enumerable.Range(0, 100).Select(i => $"{i}"), bodies, "bodies");
    }

    private static async Task LargeMessage(Bench bench)
    {
        var body = new byte[200_000];
        new Random(1).NextBytes(body);
        await bench.Send("sending", new ServiceBusMessage(body));
        await using var receiver = bench.Client.CreateReceiver("sending");
        var received = await Bench.Take(receiver);
        Expect.Sequence(body, received.Body.ToArray(), "body");
        await receiver.CompleteMessageAsync(received);
    }

    private static async Task TooLarge(Bench bench)
    {
        await using var sender = bench.Client.CreateSender("sending");
        var message = new ServiceBusMessage(new byte[300_000]);
        var exception = await Expect.Throws<ServiceBusException>(() => sender.SendMessageAsync(message), "sending");
        Expect.Equal(ServiceBusFailureReason.MessageSizeExceeded, exception.Reason, "reason");
    }

    private static async Task NoSuchQueue(Bench bench)
    {
        await using var sender = bench.Client.CreateSender("nowhere");
        var exception = await Expect.Throws<ServiceBusException>(() => sender.SendMessageAsync(Bench.Message("x")), "sending");
        Expect.Equal(ServiceBusFailureReason.MessagingEntityNotFound, exception.Reason, "reason");
    }

    private static async Task Scheduled(Bench bench)
    {
        await using var sender = bench.Client.CreateSender("scheduled");
        var at = DateTimeOffset.UtcNow.AddSeconds(1);
        var kept = await sender.ScheduleMessageAsync(Bench.Message("kept"), at);
        var numbers = await sender.ScheduleMessagesAsync([Bench.Message("a"), Bench.Message("b")], at);
        await sender.CancelScheduledMessagesAsync(numbers);
        await using var receiver = bench.Client.CreateReceiver("scheduled");
        var peeked = await receiver.PeekMessageAsync(kept);
        Expect.Equal(ServiceBusMessageState.Scheduled, peeked.State, "state");
        Expect.Equal(kept, peeked.SequenceNumber, "number");
        var received = await Bench.Take(receiver);
        Expect.Equal("kept", received.Body.ToString(), "body");
        Expect.True(DateTimeOffset.UtcNow >= at.AddMilliseconds(-50), "not before its time");
        await receiver.CompleteMessageAsync(received);
        Expect.Equal(null, await receiver.ReceiveMessageAsync(Bench.Moment), "nothing more");
    }

    private static async Task Partitioned(Bench bench)
    {
        for (var i = 0; i < 20; i++) await bench.Send("partitioned", new ServiceBusMessage($"{i}") { PartitionKey = $"key {i}" });
        await bench.Send("partitioned", new ServiceBusMessage("a") { PartitionKey = "k" }, new ServiceBusMessage("b") { PartitionKey = "k" });
        await using var receiver = bench.Client.CreateReceiver("partitioned");
        var messages = await Bench.Take(receiver, 22);
        Expect.True(messages.Any(message => message.SequenceNumber > 1L << 53), "numbers beyond 2^53");
        Expect.Equal(22, messages.Select(message => message.SequenceNumber).Distinct().Count(), "different numbers");
        foreach (var message in messages)
        {
            await receiver.DeferMessageAsync(message);
            await receiver.CompleteMessageAsync(await receiver.ReceiveDeferredMessageAsync(message.SequenceNumber));
        }
    }

    private static async Task Duplicate(Bench bench)
    {
        for (var i = 0; i < 3; i++) await bench.Send("duplicates", Bench.Message($"{i}", "same"));
        await using var receiver = bench.Client.CreateReceiver("duplicates");
        var received = await Bench.Take(receiver);
        Expect.Equal("0", received.Body.ToString(), "the first one");
        await receiver.CompleteMessageAsync(received);
        await bench.Send("duplicates", Bench.Message("after", "same"));
        Expect.Equal(null, await receiver.ReceiveMessageAsync(Bench.Moment), "nothing more, though the first is gone");
    }
}

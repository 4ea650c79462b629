using Azure.Messaging.ServiceBus;

namespace Judge;

public static class SettlingChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("a completed message is gone", () => Complete(bench));
        await report.Check("an abandoned message comes back with its new properties", () => Abandon(bench));
        await report.Check("a deferred message is taken by its number, with its new properties", () => Defer(bench));
        await report.Check("deferred messages are taken many at a time, and one that is not there fails the call", () => DeferMany(bench));
        await report.Check("a lock can be renewed", () => Renew(bench));
        await report.Check("a lock that expired is lost", () => LockLost(bench));
        await report.Check("a message is settled after its receiver was closed", () => SettleElsewhere(bench));
        await report.Check("100 settlements at once, in every way, each do what they say", () => AllAtOnce(bench));
        await report.Check("a transaction is refused in words", () => Transaction(bench));
    }

    private static async Task Complete(Bench bench)
    {
        await bench.Send("settling", Bench.Message("x"));
        await using var receiver = bench.Client.CreateReceiver("settling");
        var message = await Bench.Take(receiver);
        await receiver.CompleteMessageAsync(message);
        Expect.Equal(null, await receiver.PeekMessageAsync(0), "what is left");
        var exception = await Expect.Throws<ServiceBusException>(() => receiver.CompleteMessageAsync(message), "completing it again");
        Expect.Equal(ServiceBusFailureReason.MessageLockLost, exception.Reason, "reason");
    }

    private static async Task Abandon(Bench bench)
    {
        var sent = Bench.Message("x");
        sent.ApplicationProperties["kept"] = (short)1;
        sent.ApplicationProperties["changed"] = 1;
        await bench.Send("settling", sent);
        await using var receiver = bench.Client.CreateReceiver("settling");
        var changes = new Dictionary<string, object> { ["changed"] = 2L };
        EveryType.AddTo(changes, EveryType.NamesForSettlement);
        await receiver.AbandonMessageAsync(await Bench.Take(receiver), changes);
        var message = await Bench.Take(receiver);
        Expect.Equal(2, message.DeliveryCount, "delivery count");
        Expect.Equal((short)1, (short)message.ApplicationProperties["kept"], "kept");
        Expect.Equal(2L, (long)message.ApplicationProperties["changed"], "changed");
        foreach (var name in EveryType.NamesForSettlement) EveryType.Cast(name, message.ApplicationProperties.GetValueOrDefault(name));
        await receiver.CompleteMessageAsync(message);
    }

    private static async Task Defer(Bench bench)
    {
        await bench.Send("settling", Bench.Message("x"));
        await using var receiver = bench.Client.CreateReceiver("settling");
        var message = await Bench.Take(receiver);
        await receiver.DeferMessageAsync(message, new Dictionary<string, object> { ["why"] = 'd' });
        Expect.Equal(null, await receiver.ReceiveMessageAsync(Bench.Moment), "nothing is delivered");
        Expect.Equal(ServiceBusMessageState.Deferred, (await receiver.PeekMessageAsync(message.SequenceNumber)).State, "state");
        var taken = await receiver.ReceiveDeferredMessageAsync(message.SequenceNumber);
        Expect.Equal('d', (char)taken.ApplicationProperties["why"], "why");
        Expect.Equal(ServiceBusMessageState.Deferred, taken.State, "state");
        await receiver.AbandonMessageAsync(taken);
        taken = await receiver.ReceiveDeferredMessageAsync(message.SequenceNumber);
        await receiver.CompleteMessageAsync(taken);
        var exception = await Expect.Throws<ServiceBusException>(
            () => receiver.ReceiveDeferredMessageAsync(message.SequenceNumber), "taking what is gone");
        Expect.Equal(ServiceBusFailureReason.MessageNotFound, exception.Reason, "reason");
    }

    private static async Task DeferMany(Bench bench)
    {
        await bench.Send("settling", [.. Enumerable.Range(0, 50).Select(i => Bench.Message($"{i}"))]);
        await using var receiver = bench.Client.CreateReceiver("settling");
        var messages = await Bench.Take(receiver, 50);
        await Task.WhenAll(messages.Select(message => receiver.DeferMessageAsync(message)));
        var numbers = messages.Select(message => message.SequenceNumber).ToList();
        await Expect.Throws<ServiceBusException>(() => receiver.ReceiveDeferredMessagesAsync([.. numbers, 999_999]), "one too many");
        var taken = await receiver.ReceiveDeferredMessagesAsync(numbers);
        Expect.Sequence(numbers, taken.Select(message => message.SequenceNumber), "numbers");
        await Task.WhenAll(taken.Select(message => receiver.CompleteMessageAsync(message)));
        Expect.Equal(null, await receiver.PeekMessageAsync(0), "what is left");
    }

    private static async Task Renew(Bench bench)
    {
        await bench.Send("settling", Bench.Message("x"));
        await using var receiver = bench.Client.CreateReceiver("settling");
        var message = await Bench.Take(receiver);
        var before = message.LockedUntil;
        await Task.Delay(100);
        await receiver.RenewMessageLockAsync(message);
        Expect.True(message.LockedUntil > before, "the lock holds longer");
        await receiver.CompleteMessageAsync(message);
    }

    private static async Task LockLost(Bench bench)
    {
        await bench.Send("briefly", Bench.Message("x"));
        await using var receiver = bench.Client.CreateReceiver("briefly");
        var message = await Bench.Take(receiver);
        await Task.Delay(message.LockedUntil - DateTimeOffset.UtcNow + TimeSpan.FromMilliseconds(500));
        foreach (var settle in new Func<Task>[] { () => receiver.CompleteMessageAsync(message), () => receiver.RenewMessageLockAsync(message) })
        {
            var exception = await Expect.Throws<ServiceBusException>(settle, "settling");
            Expect.Equal(ServiceBusFailureReason.MessageLockLost, exception.Reason, "reason");
        }
        var again = await Bench.Take(receiver);
        Expect.Equal(2, again.DeliveryCount, "delivery count");
        await receiver.CompleteMessageAsync(again);
    }

    private static async Task SettleElsewhere(Bench bench)
    {
        await bench.Send("settling", Bench.Message("x"));
        ServiceBusReceivedMessage message;
        await using (var first = bench.Client.CreateReceiver("settling")) message = await Bench.Take(first);
        await using var second = bench.Client.CreateReceiver("settling");
        await second.CompleteMessageAsync(message);
        Expect.Equal(null, await second.PeekMessageAsync(0), "what is left");
    }

    private static async Task AllAtOnce(Bench bench)
    {
        await bench.Send("settling", [.. Enumerable.Range(0, 100).Select(i => Bench.Message($"{i}"))]);
        await using var receiver = bench.Client.CreateReceiver("settling");
        var messages = await Bench.Take(receiver, 100);
        await Task.WhenAll(messages.Select((message, i) => (i % 4) switch
        {
            0 => receiver.CompleteMessageAsync(message),
            1 => receiver.AbandonMessageAsync(message),
            2 => receiver.DeferMessageAsync(message),
            _ => receiver.DeadLetterMessageAsync(message, $"reason {i}"),
        }));
        var left = await receiver.PeekMessagesAsync(100, 0);
        Expect.Sequence(messages.Where((_, i) => i % 4 is 1 or 2).Select(message => message.SequenceNumber), left.Select(message => message.SequenceNumber), "left");
        await using var letters = bench.Client.CreateReceiver("settling", new ServiceBusReceiverOptions { SubQueue = SubQueue.DeadLetter });
        var dead = await Bench.Take(letters, 25);
        foreach (var letter in dead) Expect.Equal($"reason {letter.Body}", letter.DeadLetterReason, "reason");
        foreach (var letter in dead) await letters.CompleteMessageAsync(letter);
        foreach (var message in await Bench.Take(receiver, 25)) await receiver.CompleteMessageAsync(message);
        var deferred = messages.Where((_, i) => i % 4 == 2).Select(message => message.SequenceNumber);
        foreach (var message in await receiver.ReceiveDeferredMessagesAsync(deferred)) await receiver.CompleteMessageAsync(message);
    }

    private static async Task Transaction(Bench bench)
    {
        await using var sender = bench.Client.CreateSender("settling");
        await Expect.Throws<Exception>(async () =>
        {
            using var scope = new System.Transactions.TransactionScope(System.Transactions.TransactionScopeAsyncFlowOption.Enabled);
            await sender.SendMessageAsync(Bench.Message("x"));
            scope.Complete();
        }, "sending in a transaction");
        await using var receiver = bench.Client.CreateReceiver("settling");
        Expect.Equal(null, await receiver.PeekMessageAsync(0), "what is left");
    }
}

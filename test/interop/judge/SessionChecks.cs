using System.Collections.Concurrent;
using Azure.Messaging.ServiceBus;

namespace Judge;

public static class SessionChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("a session is accepted by its id and gives its messages in order", () => ById(bench));
        await report.Check("the next free session is accepted, and none is said to be none", () => Next(bench));
        await report.Check("a session has one holder, a state and a lock that is renewed", () => StateAndLock(bench));
        await report.Check("messages of a session are deferred and taken by number", () => Deferred(bench));
        await report.Check("a session processor keeps the order of every session", () => Processor(bench));
        await report.Check("a message without a session is refused", () => WithoutSession(bench));
        await report.Check("dead letters of sessions are read without sessions", () => Letters(bench));
    }

    private static ServiceBusMessage Of(string session, string body) => new(body) { SessionId = session };

    private static async Task ById(Bench bench)
    {
        await bench.Send("sessions", Of("a", "1"), Of("b", "other"), Of("a", "2"), Of("a", "3"));
        await using var session = await bench.Client.AcceptSessionAsync("sessions", "a");
        Expect.Equal("a", session.SessionId, "session id");
        var messages = await Bench.Take(session, 3);
        Expect.Sequence(["1", "2", "3"], messages.Select(message => message.Body.ToString()), "bodies");
        foreach (var message in messages) await session.CompleteMessageAsync(message);
        await using var other = await bench.Client.AcceptSessionAsync("sessions", "b");
        await other.CompleteMessageAsync(await Bench.Take(other));
    }

    private static async Task Next(Bench bench)
    {
        await bench.Send("sessions", Of("n1", "x"), Of("n2", "y"));
        await using var first = await bench.Client.AcceptNextSessionAsync("sessions");
        await using var second = await bench.Client.AcceptNextSessionAsync("sessions");
        Expect.Sequence(["n1", "n2"], new[] { first.SessionId, second.SessionId }.Order(), "sessions");
        await first.CompleteMessageAsync(await Bench.Take(first));
        await second.CompleteMessageAsync(await Bench.Take(second));
        using var timeout = new CancellationTokenSource(TimeSpan.FromSeconds(2));
        await Expect.Throws<Exception>(() => bench.Client.AcceptNextSessionAsync("sessions", cancellationToken: timeout.Token), "a third session");
    }

    private static async Task StateAndLock(Bench bench)
    {
        await bench.Send("sessions", Of("held", "x"));
        await using (var session = await bench.Client.AcceptSessionAsync("sessions", "held"))
        {
            var exception = await Expect.Throws<ServiceBusException>(() => bench.Client.AcceptSessionAsync("sessions", "held"), "a second holder");
            Expect.Equal(ServiceBusFailureReason.SessionCannotBeLocked, exception.Reason, "reason");
            Expect.Equal(null, await session.GetSessionStateAsync(), "no state at first");
            await session.SetSessionStateAsync(new BinaryData("half way"));
            Expect.Equal("half way", (await session.GetSessionStateAsync()).ToString(), "state");
            var before = session.SessionLockedUntil;
            await Task.Delay(100);
            await session.RenewSessionLockAsync();
            Expect.True(session.SessionLockedUntil > before, "the lock holds longer");
            await session.CompleteMessageAsync(await Bench.Take(session));
        }
        await using var again = await bench.Client.AcceptSessionAsync("sessions", "held");
        Expect.Equal("half way", (await again.GetSessionStateAsync()).ToString(), "state for the next holder");
        await again.SetSessionStateAsync(null);
    }

    private static async Task Deferred(Bench bench)
    {
        await bench.Send("sessions", Of("d", "x"));
        await using var session = await bench.Client.AcceptSessionAsync("sessions", "d");
        var message = await Bench.Take(session);
        await session.DeferMessageAsync(message);
        var taken = await session.ReceiveDeferredMessageAsync(message.SequenceNumber);
        await session.CompleteMessageAsync(taken);
    }

    private static async Task Processor(Bench bench)
    {
        var names = new[] { "p1", "p2", "p3", "p4" };
        foreach (var name in names) await bench.Send("sessions", [.. Enumerable.Range(0, 20).Select(i => Of(name, $"{i}"))]);
        var seen = new ConcurrentDictionary<string, ConcurrentQueue<string>>();
        var count = 0;
        var all = new TaskCompletionSource();
        await using var processor = bench.Client.CreateSessionProcessor("sessions", new()
        {
            MaxConcurrentSessions = 4,
            SessionIdleTimeout = TimeSpan.FromSeconds(2),
            PrefetchCount = 10,
        });
        processor.ProcessMessageAsync += args =>
        {
            seen.GetOrAdd(args.SessionId, _ => new()).Enqueue(args.Message.Body.ToString());
            if (Interlocked.Increment(ref count) == 80) all.TrySetResult();
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        await processor.StartProcessingAsync();
        await all.Task;
        await processor.StopProcessingAsync();
        foreach (var name in names) Expect.Sequence(Enumerable.Range(0, 20).Select(i => $"{i}"), seen[name], name);
    }

    private static async Task WithoutSession(Bench bench)
    {
        await Expect.Throws<InvalidOperationException>(() => bench.Send("sessions", Bench.Message("lost")), "sending");
        await using var receiver = bench.Client.CreateReceiver("sessions");
        await Expect.Throws<InvalidOperationException>(() => receiver.ReceiveMessageAsync(Bench.Moment), "receiving without a session");
    }

    private static async Task Letters(Bench bench)
    {
        await bench.Send("sessions", Of("l1", "x"), Of("l2", "y"));
        foreach (var name in new[] { "l1", "l2" })
        {
            await using var session = await bench.Client.AcceptSessionAsync("sessions", name);
            await session.DeadLetterMessageAsync(await Bench.Take(session), "reason");
        }
        await using var letters = bench.Client.CreateReceiver("sessions", new ServiceBusReceiverOptions { SubQueue = SubQueue.DeadLetter });
        var dead = await Bench.Take(letters, 2);
        Expect.Sequence(["l1", "l2"], dead.Select(letter => letter.SessionId).Order(), "sessions");
        foreach (var letter in dead) await letters.CompleteMessageAsync(letter);
    }
}

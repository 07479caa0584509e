package com.alibaba.nacos;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import com.alipay.sofa.jraft.RouteTable;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Collection;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatcher;

/**
 * A Java agent with the changes that a cluster on one machine needs.
 *
 * <p>The republished JRaftProtocol takes the processors of the raft groups and does nothing with them, so that a cluster
 * would wait for its leaders for ever; here they reach the raft server. gRPC listens on every address of the machine;
 * here on the server's own, so that several servers have the same ports on different loopback addresses, as pods do. A
 * server that reads its database in the moment after an election finds no leader and ends; here it looks again. And a
 * server without a leader asks for one without a pause; here it takes a breath, for there are few cores.
 */
public class NacosAgent {
    private static final String RAFT = "com.alibaba.nacos.core.distributed.raft.";
    private static final String BUILDER = "io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder";
    private static final String QUESTIONS = "com.alipay.sofa.jraft.core.CliServiceImpl";

    public static void premain(String argument, Instrumentation instrumentation) {
        AgentBuilder agent = new AgentBuilder.Default();
        agent = advise(agent, RAFT + "JRaftProtocol", CreateGroups.class, named("addRequestProcessors"));
        agent = advise(agent, RAFT + "JRaftServer", LookAgain.class, named("getLeader"));
        agent = advise(agent, BUILDER, OwnAddress.class, named("forPort").and(takesArguments(int.class)));
        agent = advise(agent, QUESTIONS, TakeABreath.class, named("getPeers").and(takesArguments(2)));
        agent.installOn(instrumentation);
    }

    private static AgentBuilder advise(
            AgentBuilder agent, String type, Class<?> advice, ElementMatcher<? super MethodDescription> method) {
        return agent.type(named(type)).transform(
                (builder, found, loader, module, domain) -> builder.visit(Advice.to(advice).on(method)));
    }

    public static class CreateGroups {
        @Advice.OnMethodExit
        public static void exit(
                @Advice.FieldValue("raftServer") Object server, @Advice.Argument(0) Collection<?> processors)
                throws ReflectiveOperationException {
            NacosAgent.createGroups(server, processors);
        }
    }

    public static void createGroups(Object server, Collection<?> processors) throws ReflectiveOperationException {
        Method create = server.getClass().getDeclaredMethod("createMultiRaftGroup", Collection.class);
        create.setAccessible(true);
        create.invoke(server, processors);
    }

    public static class LookAgain {
        @Advice.OnMethodExit
        public static void exit(
                @Advice.This Object server,
                @Advice.Argument(0) String group,
                @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object leader)
                throws Exception {
            if (leader == null) {
                leader = NacosAgent.leaderAfterAll(server, group);
            }
        }
    }

    /** Asks the peers who leads until one knows, for a few seconds. */
    public static Object leaderAfterAll(Object server, String group) throws Exception {
        Method refresh = server.getClass().getDeclaredMethod("refreshRouteTable", String.class);
        refresh.setAccessible(true);
        for (int attempt = 0; attempt < 10; attempt++) {
            refresh.invoke(server, group);
            Object leader = RouteTable.getInstance().selectLeader(group);
            if (leader != null) {
                return leader;
            }
            Thread.sleep(500);
        }
        return null;
    }

    public static class OwnAddress {
        @Advice.OnMethodExit
        public static void exit(
                @Advice.Argument(0) int port,
                @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object builder)
                throws ReflectiveOperationException {
            builder = NacosAgent.listening(builder.getClass(), port);
        }
    }

    public static Object listening(Class<?> builder, int port) throws ReflectiveOperationException {
        SocketAddress own = new InetSocketAddress(System.getProperty("nacos.server.ip"), port);
        return builder.getMethod("forAddress", SocketAddress.class).invoke(null, own);
    }

    public static class TakeABreath {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Thrown Throwable failure) throws InterruptedException {
            if (failure != null) {
                Thread.sleep(1000);
            }
        }
    }
}

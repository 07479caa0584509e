package com.alibaba.nacos;

import static net.bytebuddy.matcher.ElementMatchers.named;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.Method;
import java.util.Collection;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/**
 * A Java agent that makes the raft groups. The republished JRaftProtocol takes the processors of the groups and does
 * nothing with them, so that a cluster would wait for its leaders for ever; here they reach the raft server.
 */
public class RaftGroupsAgent {
    private static final String PROTOCOL = "com.alibaba.nacos.core.distributed.raft.JRaftProtocol";

    public static void premain(String argument, Instrumentation instrumentation) {
        new AgentBuilder.Default()
                .type(named(PROTOCOL))
                .transform((builder, type, loader, module, domain) ->
                        builder.visit(Advice.to(AfterProcessorsCame.class).on(named("addRequestProcessors"))))
                .installOn(instrumentation);
    }

    public static class AfterProcessorsCame {
        @Advice.OnMethodExit
        public static void exit(
                @Advice.FieldValue("raftServer") Object server, @Advice.Argument(0) Collection<?> processors)
                throws ReflectiveOperationException {
            RaftGroupsAgent.createGroups(server, processors);
        }
    }

    public static void createGroups(Object server, Collection<?> processors) throws ReflectiveOperationException {
        Method create = server.getClass().getDeclaredMethod("createMultiRaftGroup", Collection.class);
        create.setAccessible(true);
        create.invoke(server, processors);
    }
}

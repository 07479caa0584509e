package com.alibaba.nacos;

import com.alibaba.nacos.core.code.ControllerMethodsCache;
import org.springframework.stereotype.Component;

/** Registers the methods with the server's filters, as the console would: unknown ones answer 501. */
@Component
public class KnownMethods {
    public KnownMethods(ControllerMethodsCache methods) {
        methods.initClassMethod("com.alibaba.nacos.core.controller");
        methods.initClassMethod("com.alibaba.nacos.naming.controllers");
        methods.initClassMethod("com.alibaba.nacos.config.server.controller");
    }
}

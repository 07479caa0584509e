package com.alibaba.nacos;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.ServletComponentScan;
import org.springframework.scheduling.annotation.EnableScheduling;

/**
 * The server without its console. The console would bring the rules of web security; without it, those that Spring makes
 * up by itself would ask everybody for a password.
 */
@SpringBootApplication(
        scanBasePackages = "com.alibaba.nacos",
        excludeName = {
            "org.springframework.boot.autoconfigure.security.servlet.SecurityAutoConfiguration",
            "org.springframework.boot.autoconfigure.security.servlet.UserDetailsServiceAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.security.servlet.ManagementWebSecurityAutoConfiguration"
        })
@ServletComponentScan
@EnableScheduling
public class RealNacos {
    public static void main(String[] arguments) {
        try {
            SpringApplication.run(RealNacos.class, arguments);
        } catch (Throwable failure) {
            // Threads that look for a leader would keep the process; a container is to end, and to be started again.
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }
}

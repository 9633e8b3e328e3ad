#!/bin/sh
# Prints a new password for everything in docker-compose.yaml that needs one: sh deploy/passwords.sh >> .env
set -eu
umask 077
for name in POSTGRES OWNER APP AIRFLOW_DATABASE STORE REDIS; do
    printf '%s_PASSWORD=%s\n' "$name" "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"
done

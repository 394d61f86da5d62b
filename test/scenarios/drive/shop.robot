*** Settings ***
Documentation    Run with `robot --xunit shop.xml shop.robot` in this folder.
Resource         paybox.resource
Test Teardown    End Rig


*** Test Cases ***
An Order Is Paid
    Open Rig
    Order Should Be Payable    50000    DH1

A Whole Scenario
    Scenario Should Pass    cancelled-order
